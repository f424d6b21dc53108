"""Shards and the scheduler nodes that own them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from foliot.store import queries
from foliot.store.hints import CHANNEL, SHARDS_TOPIC
from foliot.store.postgres import Database

Epochs = dict[int, int]
"""The epoch of each owned shard."""


@dataclass(frozen=True, slots=True)
class SchedulerView:
    id: UUID
    name: str
    started_at: datetime
    beat_at: datetime | None
    is_alive: bool
    shards: int


class Shards:
    def __init__(self, database: Database, *, ttl_seconds: float) -> None:
        self._database = database
        self._ttl = float(ttl_seconds)
        self._queries = queries.load("shards")

    async def beat_scheduler(self, scheduler_id: UUID, name: str) -> Epochs:
        now = self._database.clock.sql_now()
        rows = await self._database.fetch(
            self._queries["beat_scheduler"], scheduler_id=scheduler_id, name=name, ttl_seconds=self._ttl, now=now
        )
        return {row[0]: row[1] for row in rows}

    async def take_shards(self, scheduler_id: UUID, *, nodes: int | None = None, dead: Sequence[UUID] = ()) -> Epochs:
        """`nodes`: the number of nodes that share the shards, if a coordinator knows it. `dead`: nodes whose shards are
        free although their leases have not ended."""
        now = self._database.clock.sql_now()
        rows = await self._database.fetch(
            self._queries["take_shards"],
            scheduler_id=scheduler_id,
            ttl_seconds=self._ttl,
            now=now,
            nodes=nodes,
            dead=dead,
        )
        return {row[0]: row[1] for row in rows}

    async def shards_with_other_zones(self, scheduler_id: UUID, zones: str) -> Epochs:
        rows = await self._database.fetch(
            self._queries["shards_with_other_zones"], scheduler_id=scheduler_id, zones=zones
        )
        return {row[0]: row[1] for row in rows}

    async def mark_zones(self, shard: int, scheduler_id: UUID, epoch: int, zones: str) -> None:
        await self._database.execute(
            self._queries["mark_zones"], shard=shard, scheduler_id=scheduler_id, epoch=epoch, zones=zones
        )

    async def seconds_until_free(self, scheduler_id: UUID, *, dead: Sequence[UUID] = ()) -> float | None:
        """Seconds until the first lease of another node ends, if it is not renewed. 0 if a shard is free."""
        now = self._database.clock.sql_now()
        seconds: float | None = await self._database.fetch_value(
            self._queries["seconds_until_free"], scheduler_id=scheduler_id, now=now, dead=dead
        )
        return seconds

    async def give_up_surplus(self, scheduler_id: UUID, *, nodes: int | None = None) -> list[int]:
        now = self._database.clock.sql_now()
        rows = await self._database.fetch(
            self._queries["give_up_surplus"], scheduler_id=scheduler_id, ttl_seconds=self._ttl, now=now, nodes=nodes
        )
        return [row[0] for row in rows]

    async def leave(self, scheduler_id: UUID) -> None:
        await self._database.fetch(
            self._queries["leave"], scheduler_id=scheduler_id, channel=CHANNEL, topic=SHARDS_TOPIC
        )

    async def remove_dead_schedulers(self) -> int:
        return await self._database.execute(self._queries["remove_dead_schedulers"], now=self._database.clock.sql_now())

    async def list_schedulers(self) -> list[SchedulerView]:
        rows = await self._database.fetch(self._queries["list_schedulers"], now=self._database.clock.sql_now())
        return [SchedulerView(*row) for row in rows]

    async def count_shards(self) -> tuple[int, int, datetime]:
        """All shards, those that a living node owns, and the database's clock."""
        row = await self._database.fetch_row(self._queries["count_shards"], now=self._database.clock.sql_now())
        assert row is not None  # noqa: S101
        return row[0], row[1], row[2]
