"""Reads the concurrency keys, rate keys and fairness keys of the runs of one queue, and counts how many end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.model.namespace import bare_key
from foliot.store import queries
from foliot.store.postgres import Database

SCAN_MAX = 2000
WALK_MAX = 500
HEAD = 20
COUNT_MAX = 1000
SHOWN_MAX = 100
PACE_SECONDS = 60.0
PACE_SCAN = 20_000


@dataclass(frozen=True, slots=True)
class ConcurrencyKey:
    key: str
    limit: int
    """The largest one that its first runs carry."""
    taken: int
    waiting: int


@dataclass(frozen=True, slots=True)
class RateKey:
    key: str
    limit: int
    period_seconds: float
    started: int
    """In the last period."""
    free_at: datetime | None
    """When the oldest of these starts leaves the period."""
    waiting: int


@dataclass(frozen=True, slots=True)
class FairnessKey:
    key: str
    running: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Pace:
    ended: int
    """In the last minute."""
    more: bool
    """Counting stopped at a limit: there may be more."""


class QueueKeys:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("queue_keys")

    async def concurrency_keys(self, queue: str) -> list[ConcurrencyKey]:
        """The busiest first. `SHOWN_MAX` of them."""
        rows = await self._database.fetch(
            self._queries["concurrency_keys"],
            queue=queue,
            scan=SCAN_MAX,
            walk=WALK_MAX,
            head=HEAD,
            most=COUNT_MAX,
            limit=SHOWN_MAX,
        )
        return [ConcurrencyKey(bare_key(row[0]), *row[1:]) for row in rows]

    async def rate_keys(self, queue: str) -> list[RateKey]:
        rows = await self._database.fetch(
            self._queries["rate_keys"],
            queue=queue,
            walk=WALK_MAX,
            head=HEAD,
            most=COUNT_MAX,
            limit=SHOWN_MAX,
            now=self._database.clock.sql_now(),
        )
        return [RateKey(bare_key(row[0]), *row[1:]) for row in rows]

    async def fairness_keys(self, queue: str) -> list[FairnessKey]:
        rows = await self._database.fetch(
            self._queries["fairness_keys"],
            queue=queue,
            scan=SCAN_MAX,
            walk=SHOWN_MAX,
            most=COUNT_MAX,
            limit=SHOWN_MAX,
        )
        return [FairnessKey(bare_key(row[0]), *row[1:]) for row in rows]

    async def pace(self, queue: str) -> Pace:
        row = await self._database.fetch_row(
            self._queries["ended_lately"],
            queue=queue,
            seconds=PACE_SECONDS,
            scan=PACE_SCAN,
            now=self._database.clock.sql_now(),
        )
        assert row is not None  # noqa: S101
        return Pace(row[0], row[1] >= PACE_SCAN)
