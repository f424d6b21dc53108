"""Adds up the counts for `/metrics`, and measures recent runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from foliot.model.ids import first_id_of, not_finished_before
from foliot.store import queries
from foliot.store.postgres import Database

SLOTS = 16


@dataclass(frozen=True, slots=True)
class Recent:
    """How the runs of late went."""

    succeeded: int
    failed: int
    retried: int
    tried: int
    """Those of which an attempt was made; of those, `retried` took more than one."""
    latencies: Sequence[float] | None
    """From due to started, one a quantile; None when nothing has started."""


class Metrics:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("metrics")

    async def add_tallies(self, slot: int, counted: Mapping[str, float]) -> None:
        """Not sent again when its answer got lost: to count too little is better than to count twice."""
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
        """By `now`, `later` and `recurring`, up to `most` of each state."""
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

    async def count_dead_letters(self, most: int) -> int:
        return int(await self._database.fetch_value(self._queries["count_dead_letters"], limit=most))
