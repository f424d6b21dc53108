"""Rescues the runs of dead workers."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from foliot.model.failure_fingerprint import WORKER_LOST_PATTERN
from foliot.store import queries
from foliot.store.postgres import Database


@dataclass(frozen=True, slots=True)
class Lost:
    requeued: int
    buried: int
    queues: tuple[str, ...]
    attempts: tuple[tuple[UUID, int], ...] = ()
    """The run and the token of each lost attempt."""


class LostRuns:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("lost_runs")

    async def lose_runs(self, limit: int, lost_attempts_max: int) -> Lost:
        row = await self._database.fetch_row(
            self._queries["lose_runs"],
            limit=limit,
            lost_max=lost_attempts_max,
            now=self._database.clock.sql_now(),
            pattern=WORKER_LOST_PATTERN,
        )
        return Lost(row[0], row[1], tuple(row[2]), tuple(zip(row[3], row[4], strict=True))) if row else Lost(0, 0, ())
