from __future__ import annotations

import pytest

from foliot.config import Config
from foliot.events import EventBus
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.schedulers import Node


@pytest.fixture
async def keeper(store: Store, config: Config, events: EventBus, fake_clock: FakeClock) -> ShardKeeper:
    keeper = ShardKeeper(store=store, config=config, clock=fake_clock, events=events)
    await keeper.run_once()
    return keeper


@pytest.fixture
def node(store: Store, keeper: ShardKeeper, events: EventBus, fake_clock: FakeClock) -> Node:
    return Node(store, keeper, events, fake_clock)
