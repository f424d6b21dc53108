"""Ticks become runs exactly once, under epochs that are in force, and what does not become one says why."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from foliot.clock import Clock
from foliot.model.ids import new_id
from foliot.model.job import resumed, scheduled_from
from foliot.model.schedule import Schedule
from foliot.scheduler.planner import Planner
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from foliot.triggers.base import to_instant
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job
from tests.support.schedulers import Node, outcomes


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


async def test_a_tick_fires_at_its_instant_and_not_before(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="10s")
    await node.pass_time(9.9)
    assert await outcomes(store, job) == []
    await node.pass_time(0.1)
    (tick,) = await store.jobs.list_ticks(job.id, 10)
    assert (tick.outcome, tick.tick_at) == ("ready", job.next_at)


async def test_a_stale_epoch_fires_nothing(store: Store, fake_clock: FakeClock, keeper: ShardKeeper, sql: Any) -> None:
    job = await make_job(store, every="10s")
    await fake_clock.advance(10)
    ((due,), _) = await store.jobs.due_jobs([job.shard], 10, 0.0)
    firing = Planner(to_instant(fake_clock.now())).firing_of(due)
    stale = {job.shard: keeper._epochs[job.shard] - 1}
    await keeper.run_once()
    assert (await store.jobs.fire_ticks(keeper.scheduler_id, stale, [firing])).moved == frozenset()
    assert (await store.jobs.fire_ticks(new_id(), keeper.epochs, [firing])).moved == frozenset()
    assert (await store.jobs.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).fired == 1
    assert (await store.jobs.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).moved == frozenset()
    assert await sql.fetchval("select count(*) from foliot.runs") == 1


async def test_a_node_whose_lease_is_over_fires_nothing(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    await make_job(store, every="10s")
    await fake_clock.advance(30)
    assert keeper.epochs == {}
    await node.turn()
    assert await sql.fetchval("select count(*) from foliot.runs") == 0


async def test_an_edit_affects_only_ticks_after_it(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    job = await make_job(store, every="10s", overlap="allow_all")
    await fake_clock.advance(10)
    ((due,), _) = await store.jobs.due_jobs([job.shard], 10, 0.0)
    changed = replace(job, schedule=Schedule(every="60s", overlap="allow_all", start_at=fake_clock.now()))
    assert (
        await store.jobs.change_job(job, scheduled_from(changed, fake_clock.now()), job.next_at, job.next_at, None) == 2
    )
    # What was read before the edit can't fire any more.
    await keeper.run_once()
    assert (
        await store.jobs.fire_ticks(
            keeper.scheduler_id, keeper.epochs, [Planner(to_instant(fake_clock.now())).firing_of(due)]
        )
    ).moved == frozenset()
    assert await store.jobs.change_job(job, changed, None, None, None) is None
    for _ in range(6):
        await node.pass_time(10)
    # The tick that was due and had not fired when the edit came is not silent.
    assert await outcomes(store, job) == ["superseded", "ready"]
    assert await sql.fetchval("select array_agg(version order by version) from foliot.job_versions") == [1, 2]


async def test_a_pause_stops_firing_and_its_ticks_are_summed_up(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="10s", overlap="allow_all")
    assert await store.jobs.pause_job(job.id, "maintenance", None)
    for _ in range(3):
        await node.pass_time(10)
    paused = await store.jobs.get_job(job.id, "")
    assert paused is not None
    assert await store.jobs.resume_job(*resumed(paused, fake_clock.now()))
    await node.pass_time(10)
    last, first = await store.jobs.list_ticks(job.id, 10)
    assert last.outcome == "ready"
    assert (first.outcome, first.tick_at) == ("paused", job.next_at)
    assert first.until_at == fake_clock.now().replace(second=30)


async def test_a_pause_with_an_end_ends_by_itself(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="10s", overlap="allow_all")
    await store.jobs.pause_job(job.id, None, fake_clock.now() + timedelta(seconds=15))
    for _ in range(4):
        await node.pass_time(10)
    assert await outcomes(store, job) == ["paused", "ready", "ready"]


async def test_the_runs_left_are_counted_down(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    job = await make_job(store, every="10s", overlap="allow_all")
    await sql.execute("update foliot.jobs set runs_left = 2")
    for _ in range(5):
        await node.pass_time(10)
    assert await outcomes(store, job) == ["ready", "ready"]


async def test_after_a_long_sleep_ticks_are_caught_up_and_noted(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="60s", overlap="allow_all")
    await node.pass_time(3 * 86_400)
    ticks = (await store.jobs.list_ticks(job.id, 10))[::-1]
    assert [tick.outcome for tick in ticks] == ["missed", "superseded", "ready", "ready", "ready"]
    assert ticks[0].tick_at == job.next_at


async def test_a_plan_of_what_is_soon_due_is_not_carried_out_before_its_instant(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper
) -> None:
    job = await make_job(store, every="10s")
    await fake_clock.advance(9)
    await keeper.run_once()
    ((soon,), _) = await store.jobs.due_jobs([job.shard], 10, 2.0)
    firing = Planner(to_instant(fake_clock.now())).firing_of(soon)
    assert (await store.jobs.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).moved == frozenset()
    await fake_clock.advance(1)
    assert (await store.jobs.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).fired == 1
