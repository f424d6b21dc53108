"""Ticks of recurring jobs: loads the due ones, fires them, and lists past ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from uuid import UUID

import msgspec

from foliot.model.catchup import Note
from foliot.model.job import DueJob
from foliot.model.priority import aging_microseconds
from foliot.store import queries
from foliot.store.arrays import array_text
from foliot.store.jobs import decode_days, decode_schedule
from foliot.store.postgres import Database, Record
from foliot.store.shards import Epochs
from foliot.triggers.base import to_datetime

BUFFER_MAX = 1000
"""The most runs of one job that the overlap policy `buffer_all` keeps waiting."""
AHEAD_SECONDS = 3.0
"""A node that freezes while it fires ahead of time keeps the jobs locked for no longer than this."""
SCAN_MAX = 20_000
NOTHING_KNOWN: Mapping[UUID, tuple[int, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A job whose schedule has a field or value unknown to this version, because a newer version stored it."""

    job_id: UUID
    version: int
    tick: int
    why: str


@dataclass(frozen=True, slots=True)
class Firing:
    """The decision about one due job: where its cursor moves, and which tick becomes a run, if any."""

    job: DueJob
    next_tick: int | None
    next_fire: int | None
    utc_offset: int | None
    tick: int | None
    run_id: UUID | None
    notes: tuple[Note, ...]
    previous: int | None = None
    """The tick before `tick`."""
    following: int | None = None
    """The tick after `tick`."""


@dataclass(frozen=True, slots=True)
class Fired:
    moved: frozenset[UUID]
    """The jobs whose cursor moved."""
    fired: int
    ended: frozenset[UUID]
    """The moved jobs that have no further tick."""
    queues: tuple[str, ...]
    workers: tuple[UUID, ...]
    """The workers that hold a run which must make room."""
    is_making_room: bool


@dataclass(frozen=True, slots=True)
class Tick:
    tick_at: datetime
    until_at: datetime | None
    outcome: str
    run_id: UUID | None
    blocked_by: UUID | None
    decided_at: datetime
    """When the run was created or the tick was noted. Long after `tick_at` if no scheduler node was running, or if the
    tick was backfilled."""


class TickCell(msgspec.Struct, frozen=True):
    """Ticks of one outcome that are next to each other, or a row that sums up ticks."""

    first: datetime
    last: datetime
    until_at: datetime | None
    """If set, the ticks from `first` to this one were noted together."""
    outcome: str
    count: int
    run_id: UUID | None
    """The latest run."""
    blocked_by: UUID | None


class TickDuration(msgspec.Struct, frozen=True):
    run_id: UUID
    tick_at: datetime
    state: str
    seconds: float


@dataclass(frozen=True, slots=True)
class DayOutcome:
    date: date
    outcome: str
    count: int


FireAhead = Callable[[Sequence[Firing]], Awaitable[Fired]]


class Ticks:
    def __init__(self, database: Database, *, aging_seconds: float) -> None:
        self._database = database
        self._aging = aging_microseconds(aging_seconds)
        self._queries = queries.load("ticks")

    async def due_jobs(
        self,
        shards: Sequence[int],
        limit: int,
        ahead_seconds: float,
        known: Mapping[UUID, tuple[int, int]] = NOTHING_KNOWN,
    ) -> tuple[list[DueJob], list[Unreadable]]:
        """Loads up to `limit` jobs of each shard that are due by now plus `ahead_seconds`, except jobs whose version
        and next tick are known."""
        rows = await self._database.fetch(
            self._queries["due_jobs"],
            shards=shards,
            limit=limit,
            ahead_seconds=ahead_seconds,
            now=self._database.clock.sql_now(),
        )
        due, unreadable = [], []
        for row in rows:
            job_id, version, tick = row[0], row[1], row[2]
            if known.get(job_id) == (version, tick):
                continue
            try:
                schedule, days = decode_schedule(row[4]), decode_days(row[8]) if row[8] else None
            except msgspec.ValidationError as error:
                unreadable.append(Unreadable(job_id, version, tick, str(error)))
            else:
                due.append(DueJob(job_id, version, tick, row[3], schedule, row[5], row[6], row[7], days))
        return due, unreadable

    async def fire_ticks(self, scheduler_id: UUID, epochs: Epochs, firings: Sequence[Firing]) -> Fired:
        """Fires ticks. Safe to repeat, because a cursor that has moved does not move again."""
        arguments = self._firing_arguments(
            scheduler_id, epochs, firings, self._database.clock.sql_now(), is_ahead=False
        )
        return _fired(await self._database.fetch_row(self._queries["fire_ticks"], *arguments))

    @asynccontextmanager
    async def firing_ahead(self, scheduler_id: UUID, epochs: Epochs, fire: int) -> AsyncIterator[FireAhead]:
        """Fires ahead of time, in a transaction that commits at the time itself: by then all the work is done.

        The server waits, on its own clock. If anything fails on the way, nothing is fired.
        """
        async with self._database.transaction(statement_seconds=AHEAD_SECONDS, idle_seconds=AHEAD_SECONDS) as session:

            async def fire_ticks(firings: Sequence[Firing]) -> Fired:
                arguments = self._firing_arguments(scheduler_id, epochs, firings, to_datetime(fire), is_ahead=True)
                return _fired(await session.fetchrow(self._queries["fire_ticks"].sql, *arguments))

            yield fire_ticks
            await session.fetchval(self._queries["sleep_until"].sql, fire)

    def _firing_arguments(
        self, scheduler_id: UUID, epochs: Epochs, firings: Sequence[Firing], at: datetime | None, *, is_ahead: bool
    ) -> list[object]:
        held = {f.job.shard: epochs[f.job.shard] for f in firings if f.job.shard in epochs}
        notes = [
            {
                "job_id": f.job.id,
                "version": f.job.version,
                "expected": f.job.tick,
                "tick": n.tick,
                "until": n.until,
                "reason": n.reason,
            }
            for f in firings
            for n in f.notes
        ]
        return [
            scheduler_id,
            self._aging,
            at,
            list(held),
            list(held.values()),
            BUFFER_MAX,
            array_text(f.job.id for f in firings),
            array_text(f.job.version for f in firings),
            array_text(f.job.shard for f in firings),
            array_text(f.job.schedule.overlap for f in firings),
            array_text(f.job.tick for f in firings),
            array_text(f.next_tick for f in firings),
            array_text(f.next_fire for f in firings),
            array_text(f.utc_offset for f in firings),
            array_text(f.tick for f in firings),
            array_text(f.run_id for f in firings),
            msgspec.json.encode(notes).decode(),
            is_ahead,
            array_text(f.job.fire for f in firings),
            array_text(f.previous for f in firings),
            array_text(f.following for f in firings),
        ]

    async def count_days(self, job_id: UUID, since: datetime, zone: str) -> tuple[list[DayOutcome], datetime | None]:
        """How often each outcome came on each day, and from when on if there are more ticks than are counted."""
        rows = await self._database.fetch(
            self._queries["count_days"], job_id=job_id, since=since, zone=zone, scan=SCAN_MAX
        )
        return [DayOutcome(row[0], row[1], row[2]) for row in rows], rows[0][3] if rows else None

    async def list_ticks(
        self,
        job_id: UUID,
        limit: int,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        after: tuple[datetime, UUID] | None = None,
    ) -> list[Tick]:
        """The latest first; after a tick and its run if given."""
        rows = await self._database.fetch(
            self._queries["list_ticks"],
            job_id=job_id,
            since=since,
            until=until,
            after_at=after and after[0],
            after_id=after and after[1],
            limit=limit,
        )
        return [Tick(*row) for row in rows]

    async def ticks_by_cell(
        self, job_id: UUID, since: datetime, until: datetime, cell_seconds: float
    ) -> tuple[list[TickCell], datetime | None]:
        """The cells of a time, the oldest first, and from when on if there are more ticks than are read."""
        rows = await self._database.fetch(
            self._queries["ticks_by_cell"],
            job_id=job_id,
            since=since,
            until=until,
            cell_seconds=cell_seconds,
            scan=SCAN_MAX,
        )
        return [TickCell(*row[:7]) for row in rows], rows[0][7] if rows else None

    async def list_durations(self, job_id: UUID, limit: int) -> list[TickDuration]:
        return [
            TickDuration(*row)
            for row in await self._database.fetch(self._queries["list_durations"], job_id=job_id, limit=limit)
        ]


def _fired(row: Record | None) -> Fired:
    assert row is not None  # noqa: S101
    return Fired(frozenset(row[0]), row[1], frozenset(row[2]), tuple(row[3]), tuple(row[4]), row[5])
