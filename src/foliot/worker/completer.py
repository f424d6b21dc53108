"""Writes the outcomes of attempts in batches: each batch holds the outcomes added while the previous one was written.

Every write is fenced by (run, token, worker), so sending a batch again after a lost answer changes nothing. A write
that matches no live attempt of this worker is too late: it is refused and counted. An outcome that PostgreSQL refuses
does not block its batch: it is written alone, as a failure that says so.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

import msgspec

from foliot.clock import Clock
from foliot.errors import FoliotError
from foliot.events import (
    AttemptsEnded,
    CircuitClosed,
    CircuitOpened,
    EventBus,
    RunsFinished,
    RunsReleased,
    RunsRetried,
    StaleWritesRefused,
)
from foliot.model.circuit_breaker import Circuit
from foliot.model.histogram import histogram_of
from foliot.model.outcome import Outcome, error_of
from foliot.model.run import Claim
from foliot.model.states import RunState
from foliot.service import Service
from foliot.store.hints import ALL_QUEUES_TOPIC, GATES_TOPIC
from foliot.worker.backend import WorkerStore
from foliot.worker.failure_events import failure_of
from foliot.worker.holdings import Holdings
from foliot.worker.identity import WorkerIdentity

BATCH = 1000
# Bound once: looking up an enum member is slow, and this code runs for every run.
SUCCEEDED, FAILED, SKIPPED = RunState.SUCCEEDED, RunState.FAILED, RunState.SKIPPED
SCHEDULED, READY = RunState.SCHEDULED, RunState.READY


class Completer(Service):
    def __init__(
        self,
        *,
        store: WorkerStore,
        identity: WorkerIdentity,
        holdings: Holdings,
        circuits: Mapping[str, Circuit] | None = None,
        on_dependents_released: Callable[[], None] = lambda: None,
        clock: Clock,
        events: EventBus,
    ) -> None:
        """`circuits`: the tasks whose consecutive failures are counted. `on_dependents_released` is called when an
        outcome was written that other runs waited for, so that this worker need not wait for a hint."""
        super().__init__(clock=clock, events=events)
        self._store = store
        self._identity = identity
        self._holdings = holdings
        self._pending: list[Outcome] = []
        self._durations: list[float] = []
        self.record_duration = self._durations.append
        """Records how long an attempt took, in seconds. Durations are emitted once per batch."""
        self._circuits = dict(circuits or {})
        self._on_dependents_released = on_dependents_released
        self._task_of: dict[tuple[UUID, int], str] = {}
        self._frees_gates = False
        self._releases_dependents = False
        self.batches_written = 0
        self._flushed = asyncio.Event()
        self._flushed.set()

    @property
    def is_behind(self) -> bool:
        return not self._flushed.is_set()

    @property
    def backlog(self) -> int:
        return len(self._pending)

    def add(self, outcome: Outcome, claim: Claim) -> None:
        pending = self._pending
        pending.append(outcome)
        if claim.options is not None and "concurrency" in claim.options:
            self._frees_gates = True
        if claim.flags and claim.concerns_others:
            self._releases_dependents = True
        if claim.task in self._circuits:
            self._task_of[outcome.run_id, outcome.token] = claim.task
        if outcome.state is FAILED:
            self.events.emit(failure_of(outcome, claim))
        if len(pending) == 1:
            # The others find the completer awake.
            self._flushed.clear()
            self.wake()

    def discard(self) -> None:
        """Drops the outcomes that cannot be written any more, because the worker has lost its lease."""
        self._pending.clear()
        self._holdings.clear()
        self._flushed.set()

    async def flushed(self) -> None:
        """Returns when everything added so far has been written."""
        await self._flushed.wait()

    async def run_once(self) -> float | None:
        if self._durations:
            self.events.emit(AttemptsEnded(len(self._durations), histogram_of(self._durations)))
            self._durations.clear()
        batch = self._pending[:BATCH]
        if not batch:
            self._flushed.set()
            return None
        del self._pending[:BATCH]
        try:
            await self._write(batch)
        except BaseException:
            self._pending[:0] = batch
            raise
        self.batches_written += 1
        return 0

    async def _write(self, batch: list[Outcome]) -> None:
        await self._write_outcomes(batch)
        self._holdings.settle([(outcome.run_id, outcome.token) for outcome in batch])
        if self._frees_gates:
            self._frees_gates = False
            self._store.hints.send([GATES_TOPIC])
        if self._releases_dependents:
            # The dependents may be in any queue.
            self._releases_dependents = False
            self._store.hints.send([ALL_QUEUES_TOPIC])
            self._on_dependents_released()
        if self._task_of:
            await self._count(batch)

    async def _count(self, batch: list[Outcome]) -> None:
        """A success resets the count of consecutive failures. Failures after the last success count again."""
        succeeded: dict[str, list[UUID]] = {}
        failures: Counter[str] = Counter()
        for outcome in batch:
            task = self._task_of.pop((outcome.run_id, outcome.token), None)
            if task is None:
                continue
            if outcome.state is SUCCEEDED:
                succeeded.setdefault(task, []).append(outcome.run_id)
                del failures[task]
            elif outcome.reason in ("error", "timeout"):
                failures[task] += 1
        breaker = self._store.circuit_breaker
        if succeeded:
            for task in await breaker.record_successes(
                list(succeeded), [run_id for run_ids in succeeded.values() for run_id in run_ids]
            ):
                self.events.emit(CircuitClosed(task))
        if failures:
            for task, is_open in (await breaker.record_failures(failures, self._circuits)).items():
                if is_open:
                    self.events.emit(CircuitOpened(task))

    async def _write_outcomes(self, batch: list[Outcome]) -> None:
        store, states = self._store.outcomes, [o.state for o in batch]
        retried = [o for o in batch if o.state is SCHEDULED] if SCHEDULED in states else []
        released = [o for o in batch if o.state is READY] if READY in states else []
        finished = (
            [o for o in batch if o.state is not SCHEDULED and o.state is not READY] if retried or released else batch
        )
        if finished:
            await self._send(store.finish_runs, finished)
            succeeded, failed, skipped = states.count(SUCCEEDED), states.count(FAILED), states.count(SKIPPED)
            cancelled = len(finished) - succeeded - failed - skipped
            self.events.emit(RunsFinished(succeeded, failed, cancelled, skipped))
        if retried and (suspended := [o for o in retried if o.reason == "suspended"]):
            retried = [o for o in retried if o.reason != "suspended"]
            await self._send(self._store.checkpoints.suspend_runs, suspended)
            # A run whose wait ended meanwhile is ready again.
            self._on_dependents_released()
        if retried:
            await self._send(store.retry_runs, retried)
            self.events.emit(RunsRetried(len(retried), sum(o.reason == "snoozed" for o in retried)))
        if released:
            await self._send(store.release_runs, released)
            self.events.emit(RunsReleased(len(released)))

    async def _send(self, write: Callable[[UUID, list[Outcome]], Awaitable[int]], outcomes: list[Outcome]) -> None:
        try:
            written = await write(self._identity.id, outcomes)
        except FoliotError:
            raise
        except Exception as error:
            await self._send_one_by_one(write, outcomes, error)
            return
        if written < len(outcomes):
            already = await self._store.outcomes.count_written(self._identity.id, outcomes)
            if already < len(outcomes):
                await self._store.outcomes.note_refused(self._identity.id, outcomes)
                self.events.emit(StaleWritesRefused(len(outcomes) - already))

    async def _send_one_by_one(
        self, write: Callable[[UUID, list[Outcome]], Awaitable[int]], outcomes: list[Outcome], error: Exception
    ) -> None:
        """PostgreSQL refuses one of these outcomes. That one is written alone, without its content."""
        if len(outcomes) > 1:
            for outcome in outcomes:
                await self._send(write, [outcome])
            return
        reason = msgspec.json.encode(error_of("OutcomeNotStorable", f"{type(error).__name__}: {error}")).decode()
        bare = Outcome(outcomes[0].run_id, outcomes[0].token, FAILED, "error", error=reason)
        await self._store.outcomes.finish_runs(self._identity.id, [bare])
