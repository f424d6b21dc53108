"""Limits, pauses and circuits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from foliot.model.circuit_breaker import Circuit
from foliot.store import queries
from foliot.store.postgres import Database

PauseKind = Literal["queue", "task", "everything"]
# Ours among all advisory locks of the database: the letters of "gate".
GATES_LOCK = 0x67617465
BATCH = 500
"""So many runs that have just begun to wait for a limit, and so many changes of keys, are looked at in one turn."""
PLACES = 200
"""So many runs of a key pass its limits in one turn; the key is looked at again at once if it has room for more."""
SWEPT = 20
"""So many keys of each kind are looked at in every turn although nothing has changed that we know of."""
FORGOTTEN = 1000
PROBE_SECONDS = 10.0
"""A probe that has not been started for so long makes way for one of another queue."""
HEAD = 5000
"""So many of the first of a queue are looked at when long lines are put aside, and so many of a line come back at
once."""
LONG = 500
"""A line that is shorter is stepped over: that takes less than a millisecond."""


@dataclass(frozen=True, slots=True)
class Pause:
    kind: PauseKind
    name: str
    paused_at: datetime
    until_at: datetime | None
    reason: str | None
    actor: str | None


@dataclass(frozen=True, slots=True)
class GatesInUse:
    limits: bool = False
    circuits: bool = False
    pauses: bool = False
    parked: bool = False


@dataclass(frozen=True, slots=True)
class Admission:
    """What one turn at the limits came to."""

    queues: list[str] = field(default_factory=list)
    """Of each run that became ready."""
    ousted: list[UUID] = field(default_factory=list)
    """The workers that hold what is to make room."""
    is_more: bool = False
    """There is more to look at than one turn does."""
    swept: tuple[str, str] = ("", "")
    """The last key of each kind, concurrency and rate, that was looked at in passing: where the next turn goes on."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    max_running: int | None = None
    max_depth: int | None = None
    updated_at: datetime | None = None
    """None when nobody ever set any."""


@dataclass(frozen=True, slots=True)
class CircuitState:
    task: str
    failures: int
    open_until: datetime | None
    probe_id: UUID | None


class Gates:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("gates")

    async def gates_in_use(self) -> GatesInUse:
        row = await self._database.fetch_row(self._queries["gates_in_use"], now=self._database.clock.sql_now())
        return GatesInUse(*row) if row else GatesInUse()

    @asynccontextmanager
    async def take_gates(self) -> AsyncIterator[Any]:
        """A session whose transaction holds the gates lock; None while another gatekeeper has it."""
        async with self._database.transaction(statement_seconds=30) as session:
            yield session if await session.fetchval(self._queries["take_gates"].sql, GATES_LOCK) else None

    async def admit_runs(self, swept: tuple[str, str] = ("", "")) -> Admission:
        """Nothing while another gatekeeper is at it. `swept`: where the last turn stopped."""
        now = self._database.clock.sql_now()
        async with self.take_gates() as session:
            if session is None:
                return Admission(swept=swept)
            row = await session.fetchrow(self._queries["admit_runs"].sql, now, BATCH, PLACES, SWEPT, *swept)
            queues, keys, is_more, *swept_to = row
            ousted = await session.fetch(self._queries["settle_full_keys"].sql, keys, BATCH) if keys else []
            return Admission(queues, [row[0] for row in ousted], is_more, (swept_to[0], swept_to[1]))

    async def forget_rate_starts(self) -> int:
        """The number forgotten, at most a batch."""
        return await self._database.execute(
            self._queries["forget_rate_starts"], limit=FORGOTTEN, now=self._database.clock.sql_now()
        )

    async def park_runs(self) -> int:
        """The number of runs that now stand apart."""
        return await self._database.execute(
            self._queries["park_runs"], now=self._database.clock.sql_now(), head=HEAD, long=LONG
        )

    async def unpark_runs(self) -> list[str]:
        """The queue of each run that became ready."""
        return [
            row[0]
            for row in await self._database.fetch(
                self._queries["unpark_runs"], now=self._database.clock.sql_now(), head=HEAD
            )
        ]

    async def put_pause(
        self, kind: PauseKind, name: str, until: datetime | None, reason: str | None, actor: str | None
    ) -> None:
        await self._database.execute(
            self._queries["put_pause"],
            kind=kind,
            name=name,
            until=until,
            reason=reason,
            actor=actor,
            now=self._database.clock.sql_now(),
        )

    async def delete_pause(self, kind: PauseKind, name: str) -> bool:
        return bool(await self._database.fetch_value(self._queries["delete_pause"], kind=kind, name=name))

    async def list_pauses(self) -> list[Pause]:
        rows = await self._database.fetch(self._queries["list_pauses"], now=self._database.clock.sql_now())
        return [Pause(*row) for row in rows]

    async def end_pauses(self) -> list[tuple[PauseKind, str]]:
        rows = await self._database.fetch(self._queries["end_pauses"], now=self._database.clock.sql_now())
        return [(row[0], row[1]) for row in rows]

    async def put_queue(self, name: str, limits: QueueLimits, before: QueueLimits | None = None) -> bool:
        """False when they are not what they were `before`, by default none at all."""
        updated_at = before.updated_at if before else None
        return bool(
            await self._database.fetch_value(
                self._queries["put_queue"],
                name=name,
                max_running=limits.max_running,
                max_depth=limits.max_depth,
                now=self._database.clock.sql_now(),
                updated_at=updated_at,
                is_repeatable=False,
            )
        )

    async def get_queue(self, name: str) -> QueueLimits:
        row = await self._database.fetch_row(self._queries["get_queue"], name=name)
        return QueueLimits(*row) if row else QueueLimits()

    async def full_queues(self) -> frozenset[str]:
        return frozenset(row[0] for row in await self._database.fetch(self._queries["full_queues"]))

    async def record_failures(self, failures: Mapping[str, int], circuits: Mapping[str, Circuit]) -> dict[str, bool]:
        """Whether the circuit of each task is open now."""
        bounds = [circuits[task] for task in failures]
        rows = await self._database.fetch(
            self._queries["record_failures"],
            tasks=list(failures),
            failures=list(failures.values()),
            bounds=[bound.failures for bound in bounds],
            open_seconds=[bound.seconds for bound in bounds],
            now=self._database.clock.sql_now(),
            is_repeatable=False,
        )
        return {row[0]: row[1] for row in rows}

    async def record_successes(self, tasks: Sequence[str], run_ids: Sequence[UUID]) -> list[str]:
        """The tasks that are healthy again."""
        return [
            row[0]
            for row in await self._database.fetch(self._queries["record_successes"], tasks=tasks, run_ids=run_ids)
        ]

    async def send_probes(self) -> list[str]:
        """The queues of those sent; nothing while another gatekeeper is at it."""
        now = self._database.clock.sql_now()
        async with self.take_gates() as session:
            if session is None:
                return []
            return [row[0] for row in await session.fetch(self._queries["send_probes"].sql, now, PROBE_SECONDS, HEAD)]

    async def list_circuits(self) -> list[CircuitState]:
        return [CircuitState(*row) for row in await self._database.fetch(self._queries["list_circuits"])]
