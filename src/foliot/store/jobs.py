"""Recurring jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from uuid import UUID

import asyncpg
import msgspec

from foliot.errors import Conflict
from foliot.model.calendar import CalendarDays
from foliot.model.ids import not_finished_before
from foliot.model.job import DueJob, RecurringJob
from foliot.model.namespace import Namespace, bare
from foliot.model.priority import aging_microseconds
from foliot.model.schedule import Note, Schedule
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.arrays import array_text
from foliot.store.postgres import Database, Record, Transaction
from foliot.store.run_lists import Page, page_of
from foliot.store.shards import Epochs
from foliot.triggers.base import to_datetime

decode_days = msgspec.json.Decoder(CalendarDays).decode
schedule_decoder = msgspec.json.Decoder(Schedule)
decode_json = msgspec.json.Decoder().decode
# What `buffer_all` may keep waiting.
BUFFER_MAX = 1000
# A node that freezes while it fires ahead of an instant keeps the jobs locked for no longer.
AHEAD_SECONDS = 3.0
LOOKED = ("count", "last_name")
MATCHED_AT_ONCE = 1000
NOTHING_KNOWN: Mapping[UUID, tuple[int, int]] = MappingProxyType({})


@lru_cache(maxsize=65_536)
def decode_schedule(text: str) -> Schedule:
    """Few schedules are shared by many jobs."""
    return schedule_decoder.decode(text)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A job whose schedule has a field or a value that this version does not know: a newer one stored it."""

    job_id: UUID
    version: int
    tick: int
    why: str


@dataclass(frozen=True, slots=True)
class WaitsInUse:
    """What there is to look after beside what is due."""

    cancels: bool = False
    links: bool = False
    overlaps: bool = False
    pauses: bool = False


@dataclass(frozen=True, slots=True)
class Firing:
    """What becomes of one due job: where its cursor goes, and the tick that becomes a run, if one does."""

    job: DueJob
    next_tick: int | None
    next_fire: int | None
    utc_offset: int | None
    tick: int | None
    run_id: UUID | None
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Fired:
    moved: frozenset[UUID]
    """The jobs whose cursor moved."""
    fired: int
    ended: frozenset[UUID]
    """Those of them for which no tick is to come."""
    queues: tuple[str, ...]
    workers: tuple[UUID, ...]
    """Those that hold a run which is to make room."""
    is_making_room: bool


@dataclass(frozen=True, slots=True)
class WallJob:
    """A job that fires at a time on a wall, with what tells whether its cursor is still where it belongs."""

    id: UUID
    next_at: datetime
    utc_offset: int
    timezone: str


@dataclass(frozen=True, slots=True)
class Tick:
    tick_at: datetime
    until_at: datetime | None
    outcome: str
    run_id: UUID | None
    blocked_by: UUID | None
    decided_at: datetime
    """When it became a run or was noted. Long after the tick: no scheduler node was there in time, or it was
    backfilled."""


FireAhead = Callable[[Sequence[Firing]], Awaitable[Fired]]


class Jobs:
    def __init__(self, database: Database, *, aging_seconds: float) -> None:
        self._database = database
        self._aging = aging_microseconds(aging_seconds)
        self._queries = queries.load("jobs")

    async def database_now(self) -> datetime:
        now: datetime = await self._database.fetch_value(
            self._queries["database_now"], now=self._database.clock.sql_now()
        )
        return now

    async def insert_job(self, job: RecurringJob, *, within: Transaction | None = None) -> bool:
        """False when there is a job of that name already."""
        schedule = msgspec.json.encode(job.schedule).decode()
        made = await (within or self._database).fetch_value(
            self._queries["insert_job"],
            id=job.id,
            next_at=job.next_at,
            fire_at=job.fire_at,
            shard=job.shard,
            priority=job.priority,
            runs_left=job.runs_left,
            name=job.name,
            task=job.task,
            queue=job.queue,
            schedule=schedule,
            payload=_text(job.payload),
            options=_text(job.options),
            created_at=job.created_at,
            utc_offset=job.utc_offset,
            found_under=job.found_under,
        )
        return made is not None

    async def insert_job_dependencies(
        self, job: RecurringJob, upstream_ids: Sequence[UUID], *, within: Transaction
    ) -> None:
        fires = not job.schedule.has_ticks
        await within.execute(
            self._queries["insert_job_dependencies"],
            job_id=job.id,
            upstream_ids=upstream_ids,
            fires=fires,
            aging=self._aging,
        )

    async def dependent_jobs(self, job_id: UUID) -> list[str]:
        """The names of jobs that wait for this one, some of them."""
        return [row[0] for row in await self._database.fetch(self._queries["dependent_jobs"], job_id=job_id)]

    async def waits_in_use(self) -> WaitsInUse:
        row = await self._database.fetch_row(self._queries["waits_in_use"], now=self._database.clock.sql_now())
        return WaitsInUse(*row) if row else WaitsInUse()

    async def link_runs(self, limit: int) -> int:
        """The number of runs that were tied to one that they wait for."""
        return int(
            await self._database.fetch_value(
                self._queries["link_runs"], limit=limit, now=self._database.clock.sql_now()
            )
        )

    async def get_job(self, job_id: UUID | None, name: str) -> RecurringJob | None:
        row = await self._database.fetch_row(self._queries["get_job"], job_id=job_id, name=name)
        return _job(row) if row else None

    async def list_jobs(self, namespace: Namespace, after_name: str, limit: int) -> list[RecurringJob]:
        """By name; `after_name` as its users know it."""
        return [
            _job(row)
            for row in await self._database.fetch(
                self._queries["list_jobs"],
                after_name=namespace.qualified(after_name),
                limit=limit,
                namespace=namespace.name,
            )
        ]

    async def list_tagged_jobs(
        self, namespace: Namespace, tag: str, after_name: str, *, limit: int, scan: int
    ) -> Page[RecurringJob, str]:
        """Looks at `scan` of those that have tags."""
        rows = await self._database.fetch(
            self._queries["list_tagged_jobs"],
            after_name=namespace.qualified(after_name),
            tag=tag,
            limit=limit + 1,
            scan=scan,
            namespace=namespace.name,
        )
        items = [
            _job({name: value for name, value in row.items() if name not in LOOKED})
            for row in rows
            if row["id"] is not None
        ]
        return page_of(items, limit, lambda job: job.name, rows[0]["last_name"] if rows[0]["count"] >= scan else None)

    async def match_jobs(
        self,
        namespace: Namespace,
        pattern: str | None,
        task: str | None,
        queue: str | None,
        tag: str | None,
        *,
        is_paused: bool | None,
        limit: int,
        whole_name: str | None = None,
        scan: int = MATCHED_AT_ONCE,
    ) -> list[tuple[UUID, str]]:
        """Id and name. `pattern` is one of SQL's LIKE; it and the others are as they are stored. Each statement looks
        at `scan` jobs."""
        matched: list[tuple[UUID, str]] = []
        after: str | None = namespace.qualified("")
        while after is not None and len(matched) < limit:
            left = limit - len(matched)
            rows = await self._database.fetch(
                self._queries["match_jobs"],
                pattern=pattern,
                task=task,
                queue=queue,
                is_paused=is_paused,
                limit=left,
                tag=tag,
                namespace=namespace.name,
                whole_name=whole_name,
                after_name=after,
                scan=scan,
            )
            matched += [(row[2], row[3]) for row in rows if row[2] is not None]
            after = rows[0][1] if rows[0][0] >= scan and whole_name is None else None
        return matched

    async def change_job(
        self,
        before: RecurringJob,
        after: RecurringJob,
        first_missed: datetime | None,
        last_missed: datetime | None,
        upcoming: datetime | None,
    ) -> int | None:
        """The new version; None when it was changed or fired since `before` was read, or `upcoming`, its next tick
        without it, is over."""
        version: int | None = await self._database.fetch_value(
            self._queries["change_job"],
            job_id=before.id,
            version=before.version,
            next_at=after.next_at,
            fire_at=after.fire_at,
            priority=after.priority,
            task=after.task,
            queue=after.queue,
            schedule=msgspec.json.encode(after.schedule).decode(),
            payload=_text(after.payload),
            options=_text(after.options),
            now=self._database.clock.sql_now(),
            next_at_before=before.next_at,
            first_missed=first_missed,
            last_missed=last_missed,
            utc_offset=after.utc_offset,
            found_under=after.found_under,
            runs_left=after.runs_left,
            upcoming=upcoming,
            is_repeatable=False,
        )
        return version

    async def delete_job(self, job_id: UUID, version: int | None = None) -> bool:
        """Given a version, only that. Raises `Conflict` when other jobs depend on it."""
        try:
            return bool(
                await self._database.fetch_value(
                    self._queries["delete_job"], job_id=job_id, version=version, is_repeatable=version is None
                )
            )
        except asyncpg.ForeignKeyViolationError:
            names = ", ".join(repr(bare(name)) for name in await self.dependent_jobs(job_id))
            raise Conflict(f"other jobs depend on this one: {names}; delete them first") from None

    async def pause_job(
        self, job_id: UUID, reason: str | None, until: datetime | None, version: int | None = None
    ) -> bool:
        """Given a version, only that."""
        now = self._database.clock.sql_now()
        return bool(
            await self._database.fetch_value(
                self._queries["pause_job"], job_id=job_id, reason=reason, until=until, now=now, version=version
            )
        )

    async def resume_job(self, job: RecurringJob, first_missed: datetime | None, last_missed: datetime | None) -> bool:
        now = self._database.clock.sql_now()
        return bool(
            await self._database.fetch_value(
                self._queries["resume_job"],
                job_id=job.id,
                version=job.version,
                next_at=job.next_at,
                fire_at=job.fire_at,
                first_missed=first_missed,
                last_missed=last_missed,
                now=now,
                utc_offset=job.utc_offset,
                found_under=job.found_under,
                paused_at=job.paused_at,
                paused_until=job.paused_until,
            )
        )

    async def due_jobs(
        self,
        shards: Sequence[int],
        limit: int,
        ahead_seconds: float,
        known: Mapping[UUID, tuple[int, int]] = NOTHING_KNOWN,
    ) -> tuple[list[DueJob], list[Unreadable]]:
        """Up to `limit` jobs of each shard that are due by now, or so much later, but for those whose version and next
        tick are known."""
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

    async def stale_jobs(self, limit: int) -> list[UUID]:
        return [row[0] for row in await self._database.fetch(self._queries["stale_jobs"], limit=limit)]

    async def jobs_on_the_wall(
        self, shards: Sequence[int], after: UUID, limit: int
    ) -> tuple[list[WallJob], UUID | None]:
        """Those among the next so many jobs, and where to go on from; None at the end."""
        rows = await self._database.fetch(self._queries["jobs_on_the_wall"], shards=shards, after=after, limit=limit)
        return [WallJob(*row) for row in rows[:-1]], rows[-1][0] if rows else None

    async def replan_job(self, before: RecurringJob, after: RecurringJob) -> bool:
        return bool(
            await self._database.fetch_value(
                self._queries["replan_job"],
                job_id=before.id,
                version=before.version,
                next_at_before=before.next_at,
                next_at=after.next_at,
                fire_at=after.fire_at,
                utc_offset=after.utc_offset,
                found_under=after.found_under,
            )
        )

    async def jobs_to_resume(self) -> list[UUID]:
        return [
            row[0]
            for row in await self._database.fetch(self._queries["jobs_to_resume"], now=self._database.clock.sql_now())
        ]

    async def fire_ticks(self, scheduler_id: UUID, epochs: Epochs, firings: Sequence[Firing]) -> Fired:
        """Safe to repeat: a cursor that has moved is not moved again."""
        arguments = self._firing_arguments(
            scheduler_id, epochs, firings, self._database.clock.sql_now(), is_ahead=False
        )
        return _fired(await self._database.fetch_row(self._queries["fire_ticks"], *arguments))

    @asynccontextmanager
    async def firing_ahead(self, scheduler_id: UUID, epochs: Epochs, fire: int) -> AsyncIterator[FireAhead]:
        """Fires ahead of an instant, in a transaction that commits when it has come: by then all the work is done.

        The server keeps the time, on its own clock. Whatever goes wrong on the way, nothing has been fired.
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
        ]

    async def release_held(self, scheduler_id: UUID, epochs: Epochs) -> list[str]:
        now = self._database.clock.sql_now()
        rows = await self._database.fetch(
            self._queries["release_held"],
            scheduler_id=scheduler_id,
            shards=list(epochs),
            epochs=list(epochs.values()),
            now=now,
        )
        return [row[0] for row in rows]

    async def insert_triggered_run(
        self, run_id: UUID, job_id: UUID, *, within: Transaction | None = None
    ) -> str | None:
        """The queue it went to; None when the job is gone."""
        queue: str | None = await (within or self._database).fetch_value(
            self._queries["insert_triggered_run"],
            run_id=run_id,
            job_id=job_id,
            aging=self._aging,
            now=self._database.clock.sql_now(),
            finished_from=not_finished_before(run_id),
        )
        return queue

    async def insert_backfill(self, job_id: UUID, ticks: Mapping[UUID, datetime], state: RunState) -> list[datetime]:
        """The ticks that became runs by it; `ticks` maps the id of each tick's run to its instant."""

        async def work(within: Transaction) -> list[datetime]:
            made = {
                row[0]
                for row in await within.fetch(
                    self._queries["insert_backfill"],
                    job_id=job_id,
                    run_ids=list(ticks),
                    ticks=list(ticks.values()),
                    state=state,
                    aging=self._aging,
                    now=self._database.clock.sql_now(),
                )
            }
            ids = [run_id for run_id, tick in ticks.items() if tick in made]
            removed = await within.fetch(self._queries["remove_fired"], job_id=job_id, ticks=list(made), run_ids=ids)
            return list(made - {row[0] for row in removed})

        return await self._database.in_transaction("insert_backfill", work)

    async def find_fired(self, job_id: UUID, ticks: Sequence[datetime]) -> set[datetime]:
        return {row[0] for row in await self._database.fetch(self._queries["find_fired"], job_id=job_id, ticks=ticks)}

    async def list_ticks(self, job_id: UUID, limit: int) -> list[Tick]:
        return [
            Tick(*row) for row in await self._database.fetch(self._queries["list_ticks"], job_id=job_id, limit=limit)
        ]


def _fired(row: Record | None) -> Fired:
    assert row is not None  # noqa: S101
    return Fired(frozenset(row[0]), row[1], frozenset(row[2]), tuple(row[3]), tuple(row[4]), row[5])


def _job(row: Record) -> RecurringJob:
    fields = dict(row)
    fields["schedule"] = decode_schedule(fields["schedule"])
    fields["calendar"] = None if fields["calendar"] is None else decode_days(fields["calendar"])
    # Handed on as it is: how deep a payload may be decoded depends on how deep the caller is already.
    fields["payload"] = None if fields["payload"] is None else msgspec.Raw(fields["payload"])
    fields["options"] = None if fields["options"] is None else decode_json(fields["options"])
    return RecurringJob(**fields)


def _text(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
