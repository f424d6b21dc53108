"""Ends runs that did not start by their `expires_at`."""

from __future__ import annotations

from foliot.store import queries
from foliot.store.postgres import Database


class Expiry:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("expiry")

    async def expire_runs(self, limit: int) -> int:
        """Returns the number of runs ended."""
        return await self._database.execute(
            self._queries["expire_runs"], limit=limit, now=self._database.clock.sql_now()
        )
