"""What a run gets from those before it: results by step, and the signal that let it start.

Read once, before the attempt, and only for runs that have any of it. A payload may point at a result: wherever it holds the object
`{"$result": "extract"}`, or `{"$result": "extract", "path": ["rows", 0]}`, the task gets that result, or that part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from foliot.model.outcome import Attempted, Ending, error_of
from foliot.model.run import RunOptions
from foliot.model.states import RunState
from foliot.sdk.context import Context
from foliot.store.store import Store

REFERENCE = "$result"
UPSTREAM_MAX_BYTES = 16_777_216
"""What a step can be handed by all those before it together."""


class Refused(Exception):
    """The attempt ends before it began."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.attempted = Attempted(Ending.FAILED, error=error_of(kind, message), is_retryable=False)


async def provide(store: Store, context: Context, options: RunOptions, payload: dict[str, Any]) -> dict[str, Any]:
    """Fills in the context; the payload with its references resolved. Raises `Refused`."""
    upstreams = await store.workflows.read_upstream(context.run_id, UPSTREAM_MAX_BYTES)
    context.signal = heard(None if upstreams.signal is None else msgspec.json.decode(upstreams.signal), options)
    if upstreams.bytes > UPSTREAM_MAX_BYTES:
        advice = "let steps return where their results are, not the results"
        raise Refused(
            "UpstreamTooLarge", f"the results before this step have {upstreams.bytes} bytes, {UPSTREAM_MAX_BYTES} at most; {advice}"
        )
    context.upstream = {
        found.key: None if found.result is None else msgspec.json.decode(found.result)
        for found in upstreams.found
        if found.state is RunState.SUCCEEDED or found.result is not None
    }
    return {name: resolved(value, context.upstream) for name, value in payload.items()} if upstreams.found else payload


def heard(said: Any, options: RunOptions) -> Any:
    """What the signal says. Raises `Refused` when it did not come in time, or says no."""
    if said is None:
        return None
    if said.get("timed_out"):
        if options.signal is not None and options.signal.on_timeout == "continue":
            return None
        raise Refused("SignalTimeout", "no signal came in time")
    if not said.get("approved", True):
        raise Refused("Rejected", f"rejected by signal: {said.get('message') or 'no reason given'}")
    return said.get("payload")


def resolved(value: Any, results: Mapping[str, Any]) -> Any:
    """A value with references in place of what they point at. Payloads are as deep as the decoder allows, so this may recurse."""
    if isinstance(value, list):
        return [resolved(item, results) for item in value]
    if not isinstance(value, dict):
        return value
    if REFERENCE in value and value.keys() <= {REFERENCE, "path"}:
        return pointed_at(value[REFERENCE], value.get("path", []), results)
    return {name: resolved(item, results) for name, item in value.items()}


def pointed_at(key: Any, path: Any, results: Mapping[str, Any]) -> Any:
    if not isinstance(key, str) or key not in results:
        raise Refused("NoSuchResult", f"the payload points at the result of {key!r}, and there is none before this step")
    found = results[key]
    parts = path if isinstance(path, list) else [path]
    for number, part in enumerate(parts):
        try:
            found = found[part]
        except (LookupError, TypeError):
            raise Refused("NoSuchResult", f"the result of {key!r} has nothing at {parts[: number + 1]!r}") from None
    return found
