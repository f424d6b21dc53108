"""Runs that wait for the earlier run of their job. `Ticks.fire_ticks` decides which ones do."""

from __future__ import annotations

from uuid import UUID

from foliot.store import queries
from foliot.store.postgres import Database
from foliot.store.shards import Epochs


class Overlap:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("overlap")

    async def release_held(self, scheduler_id: UUID, epochs: Epochs) -> list[str]:
        """Returns the queue of each released run."""
        now = self._database.clock.sql_now()
        rows = await self._database.fetch(
            self._queries["release_held"],
            scheduler_id=scheduler_id,
            shards=list(epochs),
            epochs=list(epochs.values()),
            now=now,
        )
        return [row[0] for row in rows]
