"""Limits of a queue: how many runs may be running in it, and how many may wait."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.store import queries
from foliot.store.postgres import Database


@dataclass(frozen=True, slots=True)
class QueueLimits:
    max_running: int | None = None
    max_depth: int | None = None
    updated_at: datetime | None = None
    """None if no limits were ever set."""


class Queues:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("queue_limits")

    async def put_queue(self, name: str, limits: QueueLimits, before: QueueLimits | None = None) -> bool:
        """Returns False if the stored limits differ from `before`, by default from no limits at all."""
        updated_at = before.updated_at if before else None
        return bool(
            await self._database.fetch_value(
                self._queries["put_queue"],
                name=name,
                max_running=limits.max_running,
                max_depth=limits.max_depth,
                now=self._database.clock.sql_now(),
                updated_at=updated_at,
                is_repeatable=False,
            )
        )

    async def get_queue(self, name: str) -> QueueLimits:
        row = await self._database.fetch_row(self._queries["get_queue"], name=name)
        return QueueLimits(*row) if row else QueueLimits()

    async def full_queues(self) -> frozenset[str]:
        return frozenset(row[0] for row in await self._database.fetch(self._queries["full_queues"]))
