"""What a run gets from those before it: results by step, and the signal that let it start.

Read once, before the attempt, and only for runs that have any of it: for those that start at the same time with one
statement, because a round trip for each would cost more than all the rest. A payload may point at a result: wherever it
holds the object `{"$result": "extract"}`, or `{"$result": "extract", "path": ["rows", 0]}`, the task gets that result,
or that part of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec

from foliot.clock import Clock
from foliot.events import EventBus
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.model.payloads import REFERENCE
from foliot.model.run import RunOptions
from foliot.model.states import RunState
from foliot.sdk.context import Context
from foliot.service import Service
from foliot.store.store import Store
from foliot.store.workflows import Before

UPSTREAM_MAX_BYTES = 16_777_216
"""What a step can be handed by all those before it together."""
BATCH = 100


class AttemptRefused(Exception):
    """The attempt ends before it began."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.attempted = Attempted(Ending.FAILED, error=error_of(kind, message), is_retryable=False)


class UpstreamReader(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._asked: list[tuple[UUID, asyncio.Future[Before]]] = []

    async def provide(self, context: Context, options: RunOptions, payload: dict[str, Any]) -> dict[str, Any]:
        """Fills in the context; the payload with its references resolved. Raises `AttemptRefused`."""
        answer: asyncio.Future[Before] = asyncio.get_running_loop().create_future()
        self._asked.append((context.run_id, answer))
        self.wake()
        return apply_upstream(await answer, context, options, payload)

    async def run_once(self) -> float | None:
        # An attempt that was stopped does not wait for its answer any more.
        self._asked = [(run_id, answer) for run_id, answer in self._asked if not answer.done()]
        if not self._asked:
            return None
        batch = self._asked[:BATCH]
        # Should it fail, they are asked for again.
        found = await self._store.workflows.read_upstream([run_id for run_id, _ in batch], UPSTREAM_MAX_BYTES)
        for run_id, answer in batch:
            if not answer.done():
                answer.set_result(found.get(run_id, Before()))
        return 0


def apply_upstream(before: Before, context: Context, options: RunOptions, payload: dict[str, Any]) -> dict[str, Any]:
    if before.bytes > UPSTREAM_MAX_BYTES:
        size, advice = (
            f"{before.bytes} bytes, {UPSTREAM_MAX_BYTES} at most",
            "let steps return where their results are, not the results",
        )
        raise AttemptRefused("UpstreamTooLarge", f"the results before this step have {size}; {advice}")
    context.upstream = {
        found.key: None if found.result is None else msgspec.json.decode(found.result)
        for found in before.upstream
        if found.state is RunState.SUCCEEDED or found.result is not None
    }
    context.signal = heard(None if before.signal is None else msgspec.json.decode(before.signal), options)
    return {name: resolved(value, context.upstream) for name, value in payload.items()} if before.upstream else payload


def heard(said: Any, options: RunOptions) -> Any:
    """What the signal says. Raises `AttemptRefused` when it did not come in time, or says no."""
    if said is None:
        return None
    if said.get("timed_out"):
        if options.signal is not None and options.signal.on_timeout == "continue":
            return None
        raise AttemptRefused("SignalTimeout", "no signal came in time")
    if not said.get("approved", True):
        raise AttemptRefused("Rejected", f"rejected by signal: {said.get('message') or 'no reason given'}")
    return said.get("payload")


def resolved(value: Any, results: Mapping[str, Any]) -> Any:
    """A value with references in place of what they point at. Payloads are as deep as the decoder allows, so this may
    recurse."""
    if isinstance(value, list):
        return [resolved(item, results) for item in value]
    if not isinstance(value, dict):
        return value
    if REFERENCE in value and value.keys() <= {REFERENCE, "path"}:
        return pointed_at(value[REFERENCE], value.get("path", []), results)
    return {name: resolved(item, results) for name, item in value.items()}


def pointed_at(key: Any, path: Any, results: Mapping[str, Any]) -> Any:
    if not isinstance(key, str) or key not in results:
        raise AttemptRefused(
            "NoSuchResult", f"the payload points at the result of {key!r}, and there is none before this step"
        )
    found = results[key]
    parts = path if isinstance(path, list) else [path]
    for number, part in enumerate(parts):
        try:
            found = found[part]
        except (LookupError, TypeError):
            raise AttemptRefused(
                "NoSuchResult", f"the result of {key!r} has nothing at {parts[: number + 1]!r}"
            ) from None
    return found
