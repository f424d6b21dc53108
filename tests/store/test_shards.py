"""Shards belong to one live scheduler node at a time, and their epochs grow with every new owner."""

from __future__ import annotations

import pytest

from foliot.clock import Clock
from foliot.model.ids import new_id
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock

FIRST, SECOND = new_id(), new_id()


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


async def test_nodes_share_the_shards_and_epochs_grow(store: Store, fake_clock: FakeClock) -> None:
    shards = store.shards
    await shards.beat_scheduler(FIRST, "first")
    mine = await shards.take_shards(FIRST)
    total, owned, _ = await shards.count_shards()
    assert len(mine) == total == owned
    await shards.beat_scheduler(SECOND, "second")
    assert await shards.take_shards(SECOND) == {}
    surplus = await shards.give_up_surplus(FIRST)
    assert len(surplus) == total // 2
    taken = await shards.take_shards(SECOND)
    assert set(taken) == set(surplus)
    assert all(taken[shard] > mine[shard] for shard in taken)
    assert set(await shards.beat_scheduler(FIRST, "first")) == set(mine) - set(surplus)


async def test_the_shards_of_a_node_that_left_are_free_at_once(store: Store, fake_clock: FakeClock) -> None:
    shards = store.shards
    await shards.beat_scheduler(FIRST, "first")
    mine = await shards.take_shards(FIRST)
    await shards.beat_scheduler(SECOND, "second")
    seconds = await shards.seconds_until_free(SECOND)
    assert seconds is not None
    assert seconds > 0
    await shards.leave(FIRST)
    assert await shards.seconds_until_free(SECOND) == 0
    assert set(await shards.take_shards(SECOND)) == set(mine)


async def test_the_shards_of_a_dead_node_are_free_when_its_lease_ends(store: Store, fake_clock: FakeClock) -> None:
    shards = store.shards
    await shards.beat_scheduler(FIRST, "first")
    mine = await shards.take_shards(FIRST)
    seconds = await shards.seconds_until_free(SECOND)
    assert seconds is not None
    await fake_clock.advance(seconds + 0.001)
    await shards.beat_scheduler(SECOND, "second")
    assert set(await shards.take_shards(SECOND)) == set(mine)
    assert await shards.beat_scheduler(FIRST, "first") == {}
