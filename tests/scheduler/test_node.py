"""A scheduler node starts all its services, and hints wake the services that wait for them."""

from __future__ import annotations

import pytest

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus, ShardsChanged
from foliot.scheduler.node import SchedulerNode
from foliot.store.store import Store


@pytest.mark.parametrize("listens", [False, True])
async def test_a_node_takes_its_shards_when_it_starts_and_frees_them_when_it_stops(
    store: Store, config: Config, clock: Clock, events: EventBus, database_url: str, listens: bool
) -> None:
    node = SchedulerNode(
        store=store, config=config, clock=clock, events=events, listen_url=database_url if listens else None
    )
    with events.expect(ShardsChanged) as changed:
        await node.start()
        assert (await changed).count == 100
    await node.stop()
