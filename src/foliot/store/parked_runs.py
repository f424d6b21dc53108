"""Parks runs that nobody may start, and brings them back."""

from __future__ import annotations

from foliot.store import queries
from foliot.store.postgres import Database

HEAD = 5000
"""How many of a queue's first runs are looked at, and how many parked runs of a task come back at once."""
LONG = 500
"""Claims skip fewer runs than this in under a millisecond, so they are not parked."""


class ParkedRuns:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("parked_runs")

    async def park_runs(self) -> int:
        """Returns the number of runs parked."""
        return await self._database.execute(
            self._queries["park_runs"], now=self._database.clock.sql_now(), head=HEAD, long=LONG
        )

    async def unpark_runs(self) -> list[str]:
        """Returns the queue of each run that became ready."""
        rows = await self._database.fetch(self._queries["unpark_runs"], now=self._database.clock.sql_now(), head=HEAD)
        return [row[0] for row in rows]
