"""Finds and moves the cursors that a changed calendar or changed time zone rules affect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from foliot.model.job import RecurringJob
from foliot.store import queries
from foliot.store.postgres import Database


@dataclass(frozen=True, slots=True)
class WallClockJob:
    """A job that fires at a local time of day, with the values that show whether its cursor is still right."""

    id: UUID
    next_at: datetime
    utc_offset: int
    timezone: str


class Replanning:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("replanning")

    async def stale_jobs(self, limit: int) -> list[UUID]:
        return [row[0] for row in await self._database.fetch(self._queries["stale_jobs"], limit=limit)]

    async def wall_clock_jobs(
        self, shards: Sequence[int], after: UUID, limit: int
    ) -> tuple[list[WallClockJob], UUID | None]:
        """Looks at the next `limit` jobs. Returns those that match, and the id to continue after, or None at the
        end."""
        rows = await self._database.fetch(self._queries["wall_clock_jobs"], shards=shards, after=after, limit=limit)
        return [WallClockJob(*row) for row in rows[:-1]], rows[-1][0] if rows else None

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
