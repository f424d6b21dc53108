"""Finds runs and recurring jobs by the beginnings of their ids."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from foliot.model.ids import not_finished_before
from foliot.store import queries
from foliot.store.postgres import Database


@dataclass(frozen=True, slots=True)
class FoundId:
    id: UUID
    kind: str
    """run or job"""
    name: str | None
    task: str
    queue: str
    state: str
    created_at: datetime
    job_id: UUID | None


class Ids:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("ids")

    async def find_ids(self, low: UUID, high: UUID, limit: int) -> list[FoundId]:
        """Up to `limit` of each kind, in order of their ids, in all namespaces."""
        rows = await self._database.fetch(
            self._queries["find_ids"], low=low, high=high, finished_from=not_finished_before(low), limit=limit
        )
        return [FoundId(*row) for row in rows]
