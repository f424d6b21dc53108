"""Shards have one owner at a time, are distributed evenly, and change hands when their owner disappears."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.scheduler.pruner import Pruner
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


def node(store: Store, config: Config, events: EventBus) -> ShardKeeper:
    return ShardKeeper(store=store, config=config, clock=store.database.clock, events=events)


async def settle(*nodes: ShardKeeper) -> list[int]:
    for _ in range(4):
        for one in nodes:
            await one.run_once()
    return [len(one.epochs) for one in nodes]


async def owners(sql: Any) -> int:
    return int(await sql.fetchval("select count(*) from foliot.shards where owner_id is not null"))


async def test_shards_are_distributed_evenly_as_nodes_come_and_go(
    store: Store, config: Config, events: EventBus, fake_clock: FakeClock, sql: Any
) -> None:
    first, second, third = (node(store, config, events) for _ in range(3))
    assert await settle(first) == [100]
    assert await settle(first, second) == [50, 50]
    counts = await settle(first, second, third)
    assert sum(counts) == 100
    assert max(counts) <= 34
    await second.on_stop()
    assert sum(await settle(first, third)) == 100
    assert await owners(sql) == 100


async def test_no_shard_ever_has_two_owners(store: Store, config: Config, events: EventBus) -> None:
    nodes = [node(store, config, events) for _ in range(5)]
    await settle(*nodes)
    held = [shard for one in nodes for shard in one.epochs]
    assert len(held) == len(set(held)) == 100


async def test_a_clean_stop_frees_everything_at_once(store: Store, config: Config, events: EventBus) -> None:
    first, second = node(store, config, events), node(store, config, events)
    await settle(first, second)
    await first.on_stop()
    assert first.epochs == {}
    await second.run_once()
    assert len(second.epochs) == 100


async def test_a_silent_node_is_fenced_when_its_lease_expires(
    store: Store, config: Config, events: EventBus, fake_clock: FakeClock
) -> None:
    silent, other = node(store, config, events), node(store, config, events)
    await settle(silent)
    before = dict(silent.epochs)
    await fake_clock.advance(8.5)
    assert silent.epochs == {}, "it must stop trusting its lease before the lease is over"
    await settle(other)
    assert len(other.epochs) == 0
    await fake_clock.advance(1)
    await settle(other)
    assert len(other.epochs) == 100
    assert all(other.epochs[shard] == epoch + 1 for shard, epoch in before.items())
    # The node wakes up and learns that it owns nothing. Then it gets its fair share again, under new epochs.
    await silent.run_once()
    assert not set(silent.epochs.items()) & set(before.items())


async def test_long_dead_nodes_are_deleted(
    store: Store, config: Config, events: EventBus, fake_clock: FakeClock, sql: Any
) -> None:
    await settle(node(store, config, events))
    await fake_clock.advance(80)
    alive = node(store, config, events)
    await settle(alive)
    await Pruner(store=store, clock=fake_clock, events=events).run_once()
    assert await sql.fetchval("select array_agg(id) from foliot.schedulers") == [alive.scheduler_id]


async def test_a_node_checks_again_when_the_lease_of_a_silent_one_ends(
    store: Store, config: Config, events: EventBus, fake_clock: FakeClock
) -> None:
    silent, other = node(store, config, events), node(store, config, events)
    await settle(silent, other)
    assert await other.run_once() == config.shard_renew_seconds
    await fake_clock.advance(7.5)
    assert await other.run_once() == pytest.approx(1.5)
    await fake_clock.advance(1.5)
    await other.run_once()
    assert len(other.epochs) == 100


async def test_shards_of_a_dead_node_do_not_wait_for_one_that_died_later(
    store: Store, config: Config, events: EventBus, fake_clock: FakeClock
) -> None:
    first, second, *others = (node(store, config, events) for _ in range(4))
    await settle(first, second, *others)
    await fake_clock.advance(5)
    # The first node died earlier; the second dies now, and its lease ends at 14.
    await settle(second, *others)
    await fake_clock.advance(4)
    assert max(await settle(*others)) < 37
    assert [await one.run_once() for one in others] == [0.3, 0.3], (
        "there are free shards, and the one that has a right to them may be dead"
    )
    await fake_clock.advance(1)
    assert sum(await settle(*others)) == 75


async def test_a_node_that_is_late_keeps_what_it_has(
    store: Store, config: Config, events: EventBus, fake_clock: FakeClock
) -> None:
    late, other = node(store, config, events), node(store, config, events)
    await settle(late, other)
    await fake_clock.advance(6)
    assert await settle(other) == [50]
    assert await settle(late, other) == [50, 50]
