"""Makes scheduled runs ready when they are due, and finds the queues with ready runs."""

from __future__ import annotations

from foliot.store import queries
from foliot.store.postgres import Database


class DueRuns:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("due_runs")

    async def promote_due_runs(self, limit: int) -> list[str]:
        """Returns the queue of each promoted run."""
        rows = await self._database.fetch(self._queries["promote_due_runs"], limit, self._database.clock.sql_now())
        return [row[0] for row in rows]

    async def seconds_until_due(self) -> float | None:
        found: float | None = await self._database.fetch_value(
            self._queries["seconds_until_due"], now=self._database.clock.sql_now()
        )
        return found

    async def ready_queues(self, limit: int) -> list[str]:
        return [row[0] for row in await self._database.fetch(self._queries["ready_queues"], limit=limit)]
