"""Counts the endings of the jobs with series of their own on `/metrics`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.exports import Place
from foliot.store.postgres import Database


class JobSeries(msgspec.Struct, frozen=True, kw_only=True):
    """The counts and durations of one job, or an addition to them."""

    job: str
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0
    seconds: float = 0.0
    buckets: Sequence[int]
    succeeded_at: datetime | None = None
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class JobEnding:
    id: UUID
    at: datetime
    job: str
    """The name of a recurring job; for other jobs, that of the task."""
    state: RunState
    seconds: float | None
    is_tagged: bool
    looked_at: int
    """How many endings were looked through to find this one and those beside it."""

    @property
    def place(self) -> Place:
        return self.at, self.id


class JobSeriesTable:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("job_series")

    async def list_tagged_endings(self, after: Place, until: datetime, limit: int, tag: str) -> list[JobEnding]:
        """The endings of tagged jobs, and at the end the last one that was looked at."""
        rows = await self._database.fetch(
            self._queries["list_tagged_endings"],
            after_at=after[0],
            after_id=after[1],
            until=until,
            limit=limit,
            tag=tag,
        )
        return [JobEnding(row[0], row[1], row[2], RunState(row[3]), *row[4:]) for row in rows]

    async def add_to_job_series(
        self, owner: UUID, after: Place, reached: Place, counted: Sequence[JobSeries], most: int
    ) -> int:
        """Returns the number of endings that were not counted, because there were too many jobs."""
        return int(
            await self._database.fetch_value(
                self._queries["add_to_job_series"],
                owner=owner,
                after_at=after[0],
                after_id=after[1],
                at=reached[0],
                id=reached[1],
                counted=msgspec.json.encode(counted).decode(),
                most=most,
            )
        )

    async def forget_job_series(self, before: datetime) -> None:
        await self._database.execute(self._queries["forget_job_series"], before=before)

    async def list_job_series(self) -> list[JobSeries]:
        rows = await self._database.fetch(self._queries["list_job_series"])
        return [JobSeries(**dict(row)) for row in rows]
