"""Stores the outcomes that workers send, each fenced by run, token and worker.

Sending a request again after a lost answer changes nothing. An outcome that PostgreSQL refuses does not block the
others: it is stored alone, as a failure that says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from random import random
from uuid import UUID

import msgspec

from foliot.errors import FoliotError, Invalid
from foliot.events import EventBus, RunsFinished, RunsReleased, RunsRetried, StaleWritesRefused
from foliot.model.outcome import Attempted, AttemptError, Ending, Outcome, decide, error_of, within_reason
from foliot.model.run import RunOptions
from foliot.model.states import RunState
from foliot.model.worker_protocol import EndedAttempt, OutcomesStored, StoredOutcome, text_of
from foliot.store.store import Store

Write = Callable[[UUID, Sequence[Outcome]], Awaitable[int]]
ALLOWED = frozenset(RunState) - {RunState.WAITING, RunState.HELD, RunState.RUNNING}


class OutcomeWriter:
    def __init__(self, store: Store, *, result_max_bytes: int, output_max_bytes: int, defaults: RunOptions) -> None:
        """`defaults`: the options of an attempt whose task says nothing."""
        self._store = store
        self._events: EventBus = store.events
        self._result_max_bytes = result_max_bytes
        self._output_max_bytes = output_max_bytes
        self._defaults = defaults

    def outcome_of(self, given: StoredOutcome) -> Outcome:
        if given.state not in ALLOWED:
            raise Invalid(f"outcomes[...].state: an attempt can't end as {given.state.value}", field="outcomes")
        result, too_large = self._result(given.result)
        if too_large is not None and given.state is RunState.SUCCEEDED:
            return Outcome(
                given.run_id,
                given.token,
                RunState.FAILED,
                "error",
                error=encoded(too_large),
                output=self._output(given),
            )
        return Outcome(
            given.run_id,
            given.token,
            given.state,
            given.reason,
            within_reason(given.delay_seconds),
            result,
            None if given.error is None else encoded(given.error),
            self._output(given),
        )

    def decided(self, given: EndedAttempt) -> Outcome:
        result, too_large = self._result(given.result)
        error = None if given.error is None else error_of(given.error.kind, given.error.message, given.error.traceback)
        attempted = Attempted(
            Ending(given.ending),
            result=result,
            error=error,
            output=self._output(given),
            reason=given.reason,
            delay_seconds=given.delay_seconds,
            is_retryable=given.is_retryable,
        )
        if too_large is not None:
            attempted = Attempted(Ending.FAILED, error=too_large, output=self._output(given))
        options = given.options.or_else(self._defaults)
        return decide(
            given.run_id,
            given.token,
            attempted,
            attempt=given.attempt,
            lost=given.lost,
            options=options,
            chance=random(),  # noqa: S311
        )

    async def write(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> OutcomesStored:
        store, written = self._store, 0
        finished = [one for one in outcomes if one.state not in (RunState.SCHEDULED, RunState.READY)]
        suspended = [one for one in outcomes if one.state is RunState.SCHEDULED and one.reason == "suspended"]
        retried = [one for one in outcomes if one.state is RunState.SCHEDULED and one.reason != "suspended"]
        released = [one for one in outcomes if one.state is RunState.READY]
        if finished:
            written += await self._send(store.outcomes.finish_runs, worker_id, finished)
            states = [one.state for one in finished]
            succeeded, failed, skipped = map(states.count, (RunState.SUCCEEDED, RunState.FAILED, RunState.SKIPPED))
            self._events.emit(RunsFinished(succeeded, failed, len(states) - succeeded - failed - skipped, skipped))
        if suspended:
            written += await self._send(store.checkpoints.suspend_runs, worker_id, suspended)
        if retried:
            written += await self._send(store.outcomes.retry_runs, worker_id, retried)
            self._events.emit(RunsRetried(len(retried), sum(one.reason == "snoozed" for one in retried)))
        if released:
            written += await self._send(store.outcomes.release_runs, worker_id, released)
            self._events.emit(RunsReleased(len(released)))
        refused = len(outcomes) - written
        if refused:
            self._events.emit(StaleWritesRefused(refused))
        return OutcomesStored(written, refused)

    async def _send(self, write: Write, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        """The number stored, now or before."""
        try:
            written = await write(worker_id, outcomes)
        except FoliotError:
            raise
        except Exception as error:
            return await self._send_one_by_one(write, worker_id, outcomes, error)
        if written < len(outcomes):
            written = await self._store.outcomes.count_written(worker_id, outcomes)
            if written < len(outcomes):
                await self._store.outcomes.note_refused(worker_id, outcomes)
        return written

    async def _send_one_by_one(
        self, write: Write, worker_id: UUID, outcomes: Sequence[Outcome], error: Exception
    ) -> int:
        if len(outcomes) > 1:
            return sum([await self._send(write, worker_id, [one]) for one in outcomes])
        why = encoded(error_of("OutcomeNotStorable", f"{type(error).__name__}: {error}"))
        bare = Outcome(outcomes[0].run_id, outcomes[0].token, RunState.FAILED, "error", error=why)
        return await self._store.outcomes.finish_runs(worker_id, [bare])

    def _result(self, given: msgspec.Raw) -> tuple[str | None, AttemptError | None]:
        size = len(bytes(given))
        if size > self._result_max_bytes:
            return None, error_of(
                "ResultTooLarge",
                f"the result has {size} bytes of JSON, more than result_max_bytes = {self._result_max_bytes}: "
                "store it elsewhere and return its location",
            )
        return text_of(given), None

    def _output(self, given: StoredOutcome | EndedAttempt) -> bytes | None:
        return given.output[: self._output_max_bytes] or None


def encoded(error: AttemptError) -> str:
    checked = error_of(error.kind, error.message, error.traceback)
    return msgspec.json.encode(checked).decode()
