"""Recurring jobs: created, changed, paused, listed and deleted. Ticks are in `ticks.py`."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from uuid import UUID

import asyncpg
import msgspec

from foliot.errors import Conflict
from foliot.model.calendar import CalendarDays
from foliot.model.ids import not_finished_before
from foliot.model.job import RecurringJob
from foliot.model.namespace import Namespace, bare
from foliot.model.priority import aging_microseconds
from foliot.model.schedule import Neighbours, Schedule
from foliot.store import queries
from foliot.store.postgres import Database, Record, Transaction
from foliot.store.run_lists import Page, page_of

decode_days = msgspec.json.Decoder(CalendarDays).decode
schedule_decoder = msgspec.json.Decoder(Schedule)
decode_json = msgspec.json.Decoder().decode
PAGE_COLUMNS = ("count", "last_name")
"""Columns of list_tagged_jobs that are not of a job."""
MATCHED_AT_ONCE = 1000
VERSIONS_KEPT = 200


@lru_cache(maxsize=65_536)
def decode_schedule(text: str) -> Schedule:
    """Cached, because many jobs share few schedules."""
    return schedule_decoder.decode(text)


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

    async def insert_job(
        self, job: RecurringJob, *, actor: str | None = None, within: Transaction | None = None
    ) -> bool:
        """Returns False if another job has the name. `actor`: who made it."""
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
            version=job.version,
            actor=actor,
        )
        return made is not None

    async def get_job(self, job_id: UUID | None, name: str) -> RecurringJob | None:
        row = await self._database.fetch_row(self._queries["get_job"], job_id=job_id, name=name)
        return _job(row) if row else None

    async def list_jobs(self, namespace: Namespace, after_name: str, limit: int) -> list[RecurringJob]:
        """In order of name. `after_name` is a name as users write it."""
        return [
            _job(row)
            for row in await self._database.fetch(
                self._queries["list_jobs"],
                after_name=namespace.qualified(after_name),
                limit=limit,
                namespace=namespace.name,
            )
        ]

    async def list_calendar_jobs(self, calendar: str, after_name: str, limit: int) -> list[RecurringJob]:
        """The jobs that use a calendar, in order of name. Both names are as they are stored."""
        rows = await self._database.fetch(
            self._queries["list_calendar_jobs"], calendar=calendar, after_name=after_name, limit=limit
        )
        return [_job(row) for row in rows]

    async def list_tagged_jobs(
        self, namespace: Namespace, tag: str, after_name: str, *, limit: int, scan: int
    ) -> Page[RecurringJob, str]:
        """Looks at `scan` jobs that have any tag."""
        return await self._list_some(self._queries["list_tagged_jobs"], namespace, tag, after_name, limit, scan)

    async def list_paused_jobs(
        self, namespace: Namespace, tag: str | None, after_name: str, *, limit: int, scan: int
    ) -> Page[RecurringJob, str]:
        """Looks at `scan` paused jobs."""
        return await self._list_some(self._queries["list_paused_jobs"], namespace, tag, after_name, limit, scan)

    async def _list_some(
        self, query: queries.Query, namespace: Namespace, tag: str | None, after_name: str, limit: int, scan: int
    ) -> Page[RecurringJob, str]:
        rows = await self._database.fetch(
            query,
            after_name=namespace.qualified(after_name),
            tag=tag,
            limit=limit + 1,
            scan=scan,
            namespace=namespace.name,
        )
        items = [
            _job({name: value for name, value in row.items() if name not in PAGE_COLUMNS})
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
        """Returns ids and names. `pattern` is a LIKE pattern; all filters are in their stored form. Each statement
        looks at `scan` jobs."""
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
        *,
        actor: str | None = None,
    ) -> int | None:
        """Returns the new version, or None if the job was changed or fired since `before` was read, or if `upcoming`,
        the next tick of `before`, has passed."""
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
            actor=actor,
            kept=VERSIONS_KEPT,
            is_repeatable=False,
        )
        return version

    async def delete_job(self, job_id: UUID, version: int | None = None, *, actor: str | None = None) -> bool:
        """Returns False if the job is gone, or no longer has this version. Raises `Conflict` if other jobs depend on
        it."""
        try:
            return bool(
                await self._database.fetch_value(
                    self._queries["delete_job"],
                    job_id=job_id,
                    version=version,
                    actor=actor,
                    now=self._database.clock.sql_now(),
                    is_repeatable=version is None,
                )
            )
        except asyncpg.ForeignKeyViolationError:
            names = ", ".join(repr(bare(name)) for name in await self.dependent_jobs(job_id))
            raise Conflict(f"other jobs depend on this one: {names}; delete them first") from None

    async def dependent_jobs(self, job_id: UUID) -> list[str]:
        """Returns the names of some jobs that wait for this one."""
        return [row[0] for row in await self._database.fetch(self._queries["dependent_jobs"], job_id=job_id)]

    async def pause_job(
        self,
        job_id: UUID,
        reason: str | None,
        until: datetime | None,
        version: int | None = None,
        actor: str | None = None,
    ) -> bool:
        """Returns False if the job is gone, or no longer has this version."""
        return bool(
            await self._database.fetch_value(
                self._queries["pause_job"],
                job_id=job_id,
                reason=reason,
                until=until,
                now=self._database.clock.sql_now(),
                version=version,
                actor=actor,
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

    async def jobs_to_resume(self) -> list[UUID]:
        return [
            row[0]
            for row in await self._database.fetch(self._queries["jobs_to_resume"], now=self._database.clock.sql_now())
        ]

    async def insert_triggered_run(
        self, run_id: UUID, job_id: UUID, *, between: Neighbours = (None, None), within: Transaction | None = None
    ) -> str | None:
        """Returns the queue of the run, or None if the job is gone. `between`: the ticks before and after it."""
        queue: str | None = await (within or self._database).fetch_value(
            self._queries["insert_triggered_run"],
            run_id=run_id,
            job_id=job_id,
            aging=self._aging,
            now=self._database.clock.sql_now(),
            finished_from=not_finished_before(run_id),
            previous=between[0],
            following=between[1],
        )
        return queue


def _job(row: Record) -> RecurringJob:
    fields = dict(row)
    fields["schedule"] = decode_schedule(fields["schedule"])
    fields["calendar"] = None if fields["calendar"] is None else decode_days(fields["calendar"])
    # Not decoded here: how deep a payload may be depends on how deep the caller's stack is.
    fields["payload"] = None if fields["payload"] is None else msgspec.Raw(fields["payload"])
    fields["options"] = None if fields["options"] is None else decode_json(fields["options"])
    return RecurringJob(**fields)


def _text(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
