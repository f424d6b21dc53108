"""The part of the store that workers use, on an API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from foliot.clock import Clock
from foliot.errors import FoliotError, Invalid, StoreUnavailable, UnknownWorker
from foliot.model.checkpoint import Checkpoint
from foliot.model.circuit_breaker import Circuit
from foliot.model.namespace import Namespace, bare
from foliot.model.outcome import Outcome
from foliot.model.run import Claim
from foliot.model.worker_protocol import (
    PARTS_MAX,
    AwaitSignal,
    CheckpointRecord,
    CheckpointsRead,
    CheckpointsRecorded,
    ClaimedRuns,
    ClaimRuns,
    CountOutcomes,
    NoteUnused,
    OfAttempt,
    OutcomesCounted,
    OutcomesStored,
    OutputPart,
    ReadUpstream,
    RecordCheckpoints,
    StoreOutcomes,
    UpstreamRead,
    WriteLogs,
    raw,
)
from foliot.service import own_task
from foliot.store.checkpoints import NewCheckpoint
from foliot.store.hints import ALL_QUEUES_TOPIC, GATES_TOPIC
from foliot.store.logs import LogPart, ProgressNote
from foliot.store.upstream_results import Before
from foliot.worker.holdings import Holdings
from foliot.worker.remote.connection import Connection
from foliot.worker.remote.messages import (
    batches,
    before_of,
    checkpoint_of,
    claim_of,
    progress_of,
    stored,
)

Key = tuple[UUID, int]
Nothing = dict[str, Any]


class NotStorable(Exception):
    """The server refuses a value. Not a `FoliotError`, because sending it again would not help."""


@dataclass(slots=True)
class OwnState:
    """The state of the worker, which all parts of its backend read."""

    namespace: Namespace
    body_max_bytes: int
    lease_seconds: float
    holdings: Holdings | None = None
    begin_lease: Callable[[float], None] = lambda _: None
    free_slots: Callable[[], Mapping[str, int]] = dict
    worker_id: UUID | None = None
    slots: Mapping[str, int] | None = None
    claims: int = 0
    """The number of claims that found runs."""

    @property
    def is_idle(self) -> bool:
        return not self.holdings


class RemoteStore:
    def __init__(self, connection: Connection, own: OwnState, clock: Clock) -> None:
        self.claims = RemoteClaims(connection, own, clock)
        self.outcomes = RemoteOutcomes(connection, own)
        self.checkpoints = RemoteCheckpoints(connection, self.outcomes)
        self.logs = RemoteLogs(connection, own)
        self.upstream_results = RemoteUpstream(connection, own)
        self.circuit_breaker = RemoteCircuitBreaker(connection, own)
        self.hints = RemoteHints(connection, own)


class RemoteClaims:
    def __init__(self, connection: Connection, own: OwnState, clock: Clock) -> None:
        self._connection, self._own, self._clock = connection, own, clock

    async def claim_runs(
        self, worker_id: UUID, slots: Mapping[str, int], tasks: Sequence[str], declined: Sequence[UUID] = ()
    ) -> list[Claim]:
        return await self._claim(worker_id, slots, tasks, declined=declined)

    async def claim_limited_runs(
        self, worker_id: UUID, queue: str, slots: int, tasks: Sequence[str], declined: Sequence[UUID] = ()
    ) -> list[Claim]:
        """The server claims from all queues at once."""
        return []

    async def claim_runs_by_id(
        self,
        worker_id: UUID,
        run_ids: Sequence[UUID],
        slots: Mapping[str, int],
        tasks: Sequence[str],
        declined: Sequence[UUID] = (),
    ) -> list[Claim]:
        """Only workers with database access follow a broker."""
        return []

    async def recover_claims(self, worker_id: UUID, held: Sequence[Key]) -> list[Claim]:
        return await self._claim(worker_id, {}, [], held=list(held))

    async def _claim(
        self,
        worker_id: UUID,
        slots: Mapping[str, int],
        tasks: Sequence[str],
        *,
        held: list[Key] | None = None,
        declined: Sequence[UUID] = (),
    ) -> list[Claim]:
        own, asked_at = self._own, self._clock.monotonic()
        asked = ClaimRuns(
            worker_id=worker_id,
            slots={bare(queue): free for queue, free in slots.items()},
            tasks=[bare(task) for task in tasks],
            held=held,
            declined=list(declined),
            is_idle=own.is_idle,
        )
        try:
            answer = await self._connection.ask("claim", asked, ClaimedRuns)
        except UnknownWorker:
            # The next heartbeat finds out, too, and the worker registers again.
            return []
        if answer.runs:
            own.claims += 1
            if answer.lease_seconds is not None:
                # Before the runs start: an idle worker may trust its old lease for longer than it lasts.
                own.begin_lease(asked_at - (own.lease_seconds - answer.lease_seconds))
        return [claim_of(run, own.namespace) for run in answer.runs]


class RemoteOutcomes:
    def __init__(self, connection: Connection, own: OwnState) -> None:
        self._connection, self._own = connection, own
        self._refused = 0

    async def finish_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        return await self.send(worker_id, outcomes)

    async def retry_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        return await self.send(worker_id, outcomes)

    async def release_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        return await self.send(worker_id, outcomes)

    async def count_written(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        """The server counts them in its answer."""
        return len(outcomes) - self._refused

    async def note_refused(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> None:
        """The server has noted them."""

    async def send(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        self._refused = 0
        for batch in batches(outcomes, self._own.body_max_bytes):
            message = StoreOutcomes(worker_id=worker_id, outcomes=[stored(one) for one in batch])
            try:
                answer = await self._connection.ask("outcomes", message, OutcomesStored)
            except Invalid as error:
                raise NotStorable(error.detail) from None
            except UnknownWorker:
                self._refused += len(batch)
                continue
            self._refused += answer.refused
        return len(outcomes) - self._refused


class RemoteCheckpoints:
    def __init__(self, connection: Connection, outcomes: RemoteOutcomes) -> None:
        self._connection, self._outcomes = connection, outcomes

    async def open_checkpoints(self, run_id: UUID, token: int, worker_id: UUID) -> list[Checkpoint] | None:
        asked = OfAttempt(worker_id=worker_id, run_id=run_id, token=token)
        found = await self._connection.ask_patiently("checkpoints/open", asked, CheckpointsRead)
        return [checkpoint_of(one) for one in found.items] if found.is_held else None

    async def record_checkpoints(
        self, worker_id: UUID, given: Sequence[NewCheckpoint]
    ) -> list[tuple[bool, datetime | None]]:
        records = [
            CheckpointRecord(
                run_id=one.run_id,
                token=one.token,
                name=one.name,
                kind="sleep" if one.kind == "sleep" else "step",
                function=one.function,
                result=raw(one.result),
                took_seconds=one.took_seconds,
                wait_seconds=one.wait_seconds,
            )
            for one in given
        ]
        asked = RecordCheckpoints(worker_id=worker_id, records=records)
        answer = await self._connection.ask("checkpoints/record", asked, CheckpointsRecorded)
        return [(one.is_held, one.due_at) for one in answer.items]

    async def await_signal(
        self, run_id: UUID, token: int, worker_id: UUID, name: str, timeout_seconds: float | None
    ) -> Checkpoint | None:
        asked = AwaitSignal(worker_id=worker_id, run_id=run_id, token=token, name=name, timeout_seconds=timeout_seconds)
        found = await self._connection.ask_patiently("checkpoints/signal", asked, CheckpointsRead)
        return checkpoint_of(found.items[0]) if found.is_held else None

    async def note_unused(self, run_id: UUID, token: int, worker_id: UUID, names: Sequence[str]) -> None:
        asked = NoteUnused(worker_id=worker_id, run_id=run_id, token=token, names=list(names))
        await self._connection.ask_patiently("checkpoints/unused", asked, Nothing)

    async def suspend_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        return await self._outcomes.send(worker_id, outcomes)


class RemoteLogs:
    def __init__(self, connection: Connection, own: OwnState) -> None:
        self._connection, self._own = connection, own

    async def write_logs(self, worker_id: UUID, parts: Sequence[LogPart], notes: Sequence[ProgressNote]) -> None:
        sent = [
            OutputPart(run_id=one.run_id, token=one.token, position=one.part, chunk=bytes(one.chunk)) for one in parts
        ]
        progress = [progress_of(one) for one in notes]
        for start in range(0, max(len(sent), len(progress)), PARTS_MAX):
            chosen = slice(start, start + PARTS_MAX)
            message = WriteLogs(worker_id=worker_id, parts=sent[chosen], progress=progress[chosen])
            await self._connection.ask("logs", message, Nothing)

    async def delete_logs(self, attempts: Sequence[Key]) -> int:
        if self._own.worker_id is not None:
            message = WriteLogs(worker_id=self._own.worker_id, ended=list(attempts))
            await self._connection.ask("logs", message, Nothing)
        return len(attempts)


class RemoteUpstream:
    def __init__(self, connection: Connection, own: OwnState) -> None:
        self._connection, self._own = connection, own

    async def read_upstream(self, run_ids: Sequence[UUID], max_bytes: int) -> dict[UUID, Before]:
        own, asked = self._own, set(run_ids)
        if own.holdings is None or own.worker_id is None:
            return {}
        held = own.holdings.keys()
        attempts = [key for key in held if key[0] in asked]
        message = ReadUpstream(worker_id=own.worker_id, attempts=attempts)
        answer = await self._connection.ask("upstream", message, UpstreamRead)
        return {found.run_id: before_of(found) for found in answer.runs}


class RemoteCircuitBreaker:
    def __init__(self, connection: Connection, own: OwnState) -> None:
        self._connection, self._own = connection, own

    async def record_failures(self, failures: Mapping[str, int], circuits: Mapping[str, Circuit]) -> dict[str, bool]:
        found = await self._count(
            failures={bare(task): number for task, number in failures.items()},
            circuits={bare(task): circuits[task] for task in failures},
        )
        return {self._own.namespace.qualified(task): is_open for task, is_open in found.open.items()}

    async def record_successes(self, tasks: Sequence[str], run_ids: Sequence[UUID]) -> list[str]:
        found = await self._count(succeeded=[bare(task) for task in tasks], run_ids=list(run_ids))
        return [self._own.namespace.qualified(task) for task in found.closed]

    async def _count(self, **given: Any) -> OutcomesCounted:
        if self._own.worker_id is None:
            return OutcomesCounted([], {})
        message = CountOutcomes(worker_id=self._own.worker_id, **given)
        return await self._connection.ask("circuits", message, OutcomesCounted)


class RemoteHints:
    """The server sends hints to the others. The worker tells it that there is a reason."""

    def __init__(self, connection: Connection, own: OwnState) -> None:
        self._connection, self._own = connection, own
        self._topics: set[str] = set()
        self._sending: asyncio.Task[None] | None = None

    def send(self, topics: Iterable[str]) -> None:
        self._topics.update({ALL_QUEUES_TOPIC, GATES_TOPIC}.intersection(topics))
        if self._topics and self._sending is None:
            self._sending = own_task(self._send(), name="hints")

    async def _send(self) -> None:
        try:
            while self._topics and self._own.worker_id is not None:
                topics, self._topics = self._topics, set()
                message = StoreOutcomes(
                    worker_id=self._own.worker_id,
                    concerns_others=ALL_QUEUES_TOPIC in topics,
                    frees_limit=GATES_TOPIC in topics,
                )
                # Losing a hint loses nothing but time.
                with suppress(StoreUnavailable, FoliotError):
                    await self._connection.ask("outcomes", message, OutcomesStored)
        finally:
            self._sending = None
