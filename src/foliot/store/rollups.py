"""Sums of each minute and hour, for charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from foliot.model.histogram import BOUNDS
from foliot.model.namespace import Namespace
from foliot.store import queries
from foliot.store.postgres import Database

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
KEPT = {MINUTE: timedelta(days=2), HOUR: timedelta(days=400)}
"""How long minutes and hours are kept."""
QUEUES_MAX = 50
"""The queues of a namespace that have rows of their own."""
DEPTH_MAX = 100_000
FORGOTTEN = 10_000


@dataclass(frozen=True, slots=True)
class Rollup:
    """One minute or hour of a queue, or of a whole namespace."""

    at: datetime
    queue: str
    succeeded: int
    failed: int
    cancelled: int
    skipped: int
    waits: Sequence[int]
    ready: int

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed + self.cancelled + self.skipped


class Rollups:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("rollups")

    async def last_recorded(self, step: timedelta) -> datetime | None:
        found: datetime | None = await self._database.fetch_value(self._queries["last_recorded"], step=_seconds(step))
        return found

    async def record_minute(self, at: datetime) -> None:
        await self._database.execute(
            self._queries["record_minute"],
            at=at,
            until=at + MINUTE,
            bounds=list(BOUNDS),
            most=QUEUES_MAX,
            depth=DEPTH_MAX,
        )

    async def record_hour(self, at: datetime) -> None:
        await self._database.execute(self._queries["record_hour"], at=at, until=at + HOUR, most=QUEUES_MAX)

    async def list_rollups(
        self, step: timedelta, namespace: Namespace, since: datetime, until: datetime, *, by_queue: bool
    ) -> list[Rollup]:
        rows = await self._database.fetch(
            self._queries["list_rollups"],
            step=_seconds(step),
            namespace=namespace.name,
            since=since,
            until=until,
            by_queue=by_queue,
        )
        return [Rollup(*row) for row in rows]

    async def list_recorded(self, step: timedelta, since: datetime, until: datetime) -> list[datetime]:
        rows = await self._database.fetch(self._queries["list_recorded"], step=_seconds(step), since=since, until=until)
        return [row[0] for row in rows]

    async def forget_rollups(self, step: timedelta, before: datetime) -> int:
        return int(
            await self._database.fetch_value(
                self._queries["forget_rollups"], step=_seconds(step), before=before, limit=FORGOTTEN
            )
        )


def _seconds(step: timedelta) -> int:
    return int(step.total_seconds())
