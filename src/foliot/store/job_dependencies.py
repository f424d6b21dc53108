"""Recurring jobs that wait for other recurring jobs."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from foliot.model.job import RecurringJob
from foliot.model.priority import aging_microseconds
from foliot.store import queries
from foliot.store.postgres import Database, Transaction


class JobDependencies:
    def __init__(self, database: Database, *, aging_seconds: float) -> None:
        self._database = database
        self._aging = aging_microseconds(aging_seconds)
        self._queries = queries.load("job_dependencies")

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

    async def link_runs(self, limit: int) -> int:
        """Returns the number of runs that were linked to a run that they wait for."""
        return int(
            await self._database.fetch_value(
                self._queries["link_runs"], limit=limit, now=self._database.clock.sql_now()
            )
        )
