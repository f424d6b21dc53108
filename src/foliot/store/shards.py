"""Shards and the scheduler nodes that own them. One typed method a query, same name, no decisions."""

from __future__ import annotations

from uuid import UUID

from foliot.store import queries
from foliot.store.hints import CHANNEL, SHARDS_TOPIC
from foliot.store.postgres import Database

Epochs = dict[int, int]
"""The epoch under which each shard is owned."""


class Shards:
    def __init__(self, database: Database, *, ttl_seconds: float) -> None:
        self._database = database
        self._ttl = float(ttl_seconds)
        self._queries = queries.load("shards")

    async def beat_scheduler(self, scheduler_id: UUID, name: str) -> Epochs:
        now = self._database.clock.sql_now()
        rows = await self._database.fetch(self._queries["beat_scheduler"], scheduler_id, name, self._ttl, now)
        return {row[0]: row[1] for row in rows}

    async def take_shards(self, scheduler_id: UUID) -> Epochs:
        now = self._database.clock.sql_now()
        rows = await self._database.fetch(self._queries["take_shards"], scheduler_id, self._ttl, now)
        return {row[0]: row[1] for row in rows}

    async def shards_with_other_zones(self, scheduler_id: UUID, zones: str) -> Epochs:
        rows = await self._database.fetch(self._queries["shards_with_other_zones"], scheduler_id, zones)
        return {row[0]: row[1] for row in rows}

    async def mark_zones(self, shard: int, scheduler_id: UUID, epoch: int, zones: str) -> None:
        await self._database.execute(self._queries["mark_zones"], shard, scheduler_id, epoch, zones)

    async def seconds_until_free(self, scheduler_id: UUID) -> float | None:
        """Until the first lease of another node ends, should it not be renewed; 0 when a shard is free."""
        now = self._database.clock.sql_now()
        seconds: float | None = await self._database.fetch_value(self._queries["seconds_until_free"], scheduler_id, now)
        return seconds

    async def give_up_surplus(self, scheduler_id: UUID) -> list[int]:
        now = self._database.clock.sql_now()
        rows = await self._database.fetch(self._queries["give_up_surplus"], scheduler_id, self._ttl, now)
        return [row[0] for row in rows]

    async def leave(self, scheduler_id: UUID) -> None:
        await self._database.fetch(self._queries["leave"], scheduler_id, CHANNEL, SHARDS_TOPIC)

    async def remove_dead_schedulers(self) -> int:
        return await self._database.execute(self._queries["remove_dead_schedulers"], self._database.clock.sql_now())
