"""Adds up the counts for `/metrics`, and measures recent runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from foliot.model.ids import first_id_of, not_finished_before
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database

SLOTS = 16


@dataclass(frozen=True, slots=True)
class Recent:
    """Measurements of recent runs."""

    succeeded: int
    failed: int
    retried: int
    tried: int
    """Runs with at least one attempt; `retried` of them had more than one."""
    latencies: Sequence[float] | None
    """Seconds from due to start, one for each quantile. None if nothing has started."""


@dataclass(frozen=True, slots=True)
class LatestRun:
    """A run that ended just now, as an example in a histogram."""

    id: UUID
    job: str
    state: RunState
    attempt: int
    traceparent: str | None
    waited: float
    lasted: float
    finished_at: datetime


class Metrics:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("metrics")

    async def add_tallies(self, slot: int, counted: Mapping[str, float]) -> None:
        """Not repeated when its answer gets lost, because a low count is better than a double count."""
        await self._database.execute(
            self._queries["add_tallies"],
            slot=slot % SLOTS,
            names=list(counted),
            values=list(counted.values()),
            is_repeatable=False,
        )

    async def sum_tallies(self) -> dict[str, float]:
        return {row[0]: row[1] for row in await self._database.fetch(self._queries["sum_tallies"])}

    async def count_pending(self, most: int) -> dict[str, int]:
        """Counts waiting runs as `now`, `later` or `recurring`, up to `most` of each state."""
        return {row[0]: row[1] for row in await self._database.fetch(self._queries["count_pending"], most=most)}

    async def measure_recent(self, since: datetime, most: int, quantiles: Sequence[float]) -> Recent:
        first = first_id_of(since)
        row = await self._database.fetch_row(
            self._queries["measure_recent"],
            first_id=first,
            finished_from=not_finished_before(first),
            limit=most,
            quantiles=quantiles,
        )
        assert row is not None  # noqa: S101
        return Recent(*row)

    async def list_latest(self, since: datetime, most: int) -> list[LatestRun]:
        """Runs that a worker ended, the latest first."""
        first = first_id_of(since)
        rows = await self._database.fetch(
            self._queries["list_latest"], first_id=first, finished_from=not_finished_before(first), limit=most
        )
        return [LatestRun(row[0], row[1], RunState(row[2]), *row[3:]) for row in rows]

    async def count_dead_letters(self, most: int) -> int:
        return int(await self._database.fetch_value(self._queries["count_dead_letters"], limit=most))
