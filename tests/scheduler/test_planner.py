"""Plans of ticks that are late, stale or not yet due."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.clock import Clock
from foliot.scheduler.planner import Planner
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from foliot.triggers.base import to_instant
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job
from tests.support.schedulers import Node
from tests.support.ticks import assert_sound


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


async def test_after_a_long_sleep_ticks_are_caught_up_and_noted(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="60s", overlap="allow_all")
    await node.pass_time(3 * 86_400)
    ticks = (await store.ticks.list_ticks(job.id, 10))[::-1]
    assert [tick.outcome for tick in ticks] == ["missed", "superseded", "ready", "ready", "ready"]
    assert ticks[0].tick_at == job.next_at


async def test_a_plan_is_not_carried_out_before_its_instant(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper
) -> None:
    job = await make_job(store, every="10s")
    await fake_clock.advance(9)
    await keeper.run_once()
    ((soon,), _) = await store.ticks.due_jobs([job.shard], 10, 2.0)
    firing = Planner(to_instant(fake_clock.now())).firing_of(soon)
    assert (await store.ticks.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).moved == frozenset()
    await fake_clock.advance(1)
    assert (await store.ticks.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).fired == 1


async def test_notes_of_a_stale_plan_are_not_written_with_a_current_firing(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, sql: Any
) -> None:
    # As on a node that was slow for longer than the grace period: its wheel has an old and the current plan of the job,
    # both due.
    job = await make_job(store, every="10s", overlap="allow_all", catchup="none", grace_seconds=1)
    await fake_clock.advance(35)
    await keeper.run_once()
    ((due,), _) = await store.ticks.due_jobs([job.shard], 10, 0.0)
    stale = Planner(to_instant(await store.jobs.database_now())).firing_of(due)
    assert len(stale.notes) == 1
    assert (await store.ticks.fire_ticks(keeper.scheduler_id, keeper.epochs, [stale])).moved != frozenset()
    await fake_clock.advance(5)
    ((due,), _) = await store.ticks.due_jobs([job.shard], 10, 0.0)
    fresh = Planner(to_instant(await store.jobs.database_now())).firing_of(due)
    assert (await store.ticks.fire_ticks(keeper.scheduler_id, keeper.epochs, [stale, fresh])).fired == 1
    await assert_sound(sql)
