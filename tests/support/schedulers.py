"""A scheduler node inside the test process, on the real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from foliot.config import Config
from foliot.events import EventBus
from foliot.scheduler.firer import Firer
from foliot.scheduler.loader import Loader
from foliot.scheduler.node import SchedulerNode
from foliot.scheduler.replanner import Replanner
from foliot.scheduler.resumer import Resumer
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock


class Node:
    """A scheduler node that a test runs step by step."""

    def __init__(self, store: Store, keeper: ShardKeeper, events: EventBus, clock: FakeClock) -> None:
        self._clock = clock
        self._keeper = keeper
        self._loader = Loader(store=store, shards=keeper, clock=clock, events=events)
        self._firer = Firer(store=store, shards=keeper, loader=self._loader, clock=clock, events=events, lead_seconds=0)
        self.replanner = Replanner(store=store, shards=keeper, clock=clock, events=events)
        self._resumer = Resumer(store=store, shards=keeper, clock=clock, events=events)

    async def turn(self) -> None:
        """Runs every service until nothing is due."""
        await self._resumer.run_once()
        await self._loader.run_once()
        while await self._firer.run_once() == 0:
            await self._loader.run_once()

    async def pass_time(self, seconds: float) -> None:
        await self._clock.advance(seconds)
        await self._keeper.run_once()
        await self.turn()


@asynccontextmanager
async def scheduler_node(store: Store) -> AsyncIterator[SchedulerNode]:
    """A whole node that runs by itself."""
    node = SchedulerNode(
        store=store,
        config=Config(),
        clock=store.database.clock,
        events=store.events,
        listen_url=store.database.url,
    )
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


async def outcomes(store: Store, job: Any) -> list[str]:
    return [tick.outcome for tick in await store.ticks.list_ticks(job.id, 200)][::-1]
