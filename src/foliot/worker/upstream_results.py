"""Reads the results of upstream steps, and the signal that let a run start.

They are read once, before the attempt, and only for runs that have any. Attempts that start at the same time share one
statement, because a round trip for each would dominate their cost. A payload may refer to a result: the task gets the
result, or a part of it, in place of an object `{"$result": "extract"}` or
`{"$result": "extract", "path": ["rows", 0]}`.
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
from foliot.model.references import with_results
from foliot.model.run import RunOptions
from foliot.model.states import RunState
from foliot.sdk.context import Context
from foliot.service import Service
from foliot.store.upstream_results import UPSTREAM_MAX_BYTES, Before
from foliot.worker.backend import WorkerStore

BATCH = 100


class AttemptRefused(Exception):
    """The attempt fails before its task is called."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.attempted = Attempted(Ending.FAILED, error=error_of(kind, message), is_retryable=False)


class UpstreamReader(Service):
    def __init__(self, *, store: WorkerStore, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._requests: list[tuple[UUID, asyncio.Future[Before]]] = []

    async def provide(self, context: Context, options: RunOptions, payload: dict[str, Any]) -> dict[str, Any]:
        """Fills in the context and returns the payload with its references resolved. Raises `AttemptRefused`."""
        answer: asyncio.Future[Before] = asyncio.get_running_loop().create_future()
        self._requests.append((context.run_id, answer))
        self.wake()
        return apply_upstream(await answer, context, options, payload)

    async def run_once(self) -> float | None:
        # Attempts that were stopped meanwhile no longer wait for an answer.
        self._requests = [(run_id, answer) for run_id, answer in self._requests if not answer.done()]
        if not self._requests:
            return None
        batch = self._requests[:BATCH]
        # If the read fails, the batch is read again.
        found = await self._store.upstream_results.read_upstream([run_id for run_id, _ in batch], UPSTREAM_MAX_BYTES)
        for run_id, answer in batch:
            if not answer.done():
                answer.set_result(found.get(run_id, Before()))
        return 0


def apply_upstream(before: Before, context: Context, options: RunOptions, payload: dict[str, Any]) -> dict[str, Any]:
    if before.bytes > UPSTREAM_MAX_BYTES:
        raise AttemptRefused(
            "UpstreamTooLarge",
            f"the upstream results have {before.bytes} bytes, more than {UPSTREAM_MAX_BYTES}; "
            "store large results elsewhere and return where they are",
        )
    context.upstream = {
        found.key: None if found.result is None else msgspec.json.decode(found.result)
        for found in before.upstream
        if found.state is RunState.SUCCEEDED or found.result is not None
    }
    context.signal = signal_payload(None if before.signal is None else msgspec.json.decode(before.signal), options)
    return resolve(context.task, payload, context.upstream) if before.upstream else payload


def signal_payload(signal: Any, options: RunOptions) -> Any:
    """The payload of the signal. Raises `AttemptRefused` if the signal timed out or rejects the run."""
    if signal is None:
        return None
    if signal.get("timed_out"):
        if options.signal is not None and options.signal.on_timeout == "continue":
            return None
        raise AttemptRefused("SignalTimeout", "no signal arrived in time")
    if not signal.get("approved", True):
        raise AttemptRefused("Rejected", f"rejected by signal: {signal.get('message') or 'no reason given'}")
    return signal.get("payload")


def resolve(task: str, payload: Mapping[str, Any], results: Mapping[str, Any]) -> dict[str, Any]:
    """The payload with the results that it refers to. Raises `AttemptRefused`."""
    return with_results(task, payload, lambda found: look_up(found[REFERENCE], found.get("path", []), results))


def look_up(key: Any, path: Any, results: Mapping[str, Any]) -> Any:
    if not isinstance(key, str) or key not in results:
        raise AttemptRefused("NoSuchResult", f"the payload refers to the result of {key!r}, but there is none")
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
