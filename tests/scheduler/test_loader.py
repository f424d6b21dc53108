"""A schedule that this node can't read, because a newer version stored it or its zone is unknown here, does not block
other jobs."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.clock import Clock
from foliot.events import Event, EventBus, ScheduleUnreadable
from foliot.scheduler.loader import Loader
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job
from tests.support.schedulers import Node, outcomes


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


UNREADABLE_CRON = '{"cron": "fortnightly 0 9 * * *"}'
UNREADABLE = {
    "an expression of a version to come": UNREADABLE_CRON,
    "a zone that this machine does not know": '{"cron": "* * * * *", "timezone": "Europe/Atlantis"}',
    "a field of a version to come": '{"every": "10s", "skips_full_moons": true}',
    "a period of a version to come": '{"every": "3 fortnights"}',
}


@pytest.mark.parametrize("schedule", UNREADABLE.values(), ids=UNREADABLE)
async def test_an_unreadable_schedule_does_not_block_other_jobs(
    store: Store, keeper: ShardKeeper, node: Node, sql: Any, seen: list[Event], schedule: str
) -> None:
    good = await make_job(store, every="10s", overlap="allow_all")
    bad = await make_job(store, every="10s")
    await sql.execute("update foliot.jobs set schedule = $2::text::jsonb where id = $1", bad.id, schedule)
    for _ in range(3):
        await node.pass_time(10)
    assert await outcomes(store, good) == ["ready"] * 3
    assert await sql.fetchval("select count(*) from foliot.runs where job_id = $1", bad.id) == 0
    (said,) = [event for event in seen if isinstance(event, ScheduleUnreadable)]
    assert said.job_id == bad.id
    assert said.why
    # Once corrected, it fires by itself.
    await sql.execute(
        """update foliot.jobs set schedule = '{"every": "10s"}', version = version + 1 where id = $1""", bad.id
    )
    await node.pass_time(10)
    assert await sql.fetchval("select count(*) from foliot.runs where job_id = $1", bad.id) == 1


async def test_a_job_read_between_its_firing_and_the_reply_is_in_the_wheel_once(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, events: EventBus
) -> None:
    job = await make_job(store, every="1s", overlap="allow_all")
    loader = Loader(store=store, shards=keeper, clock=fake_clock, events=events)
    await loader.run_once()
    assert loader.wheel is not None
    await fake_clock.advance(1)
    ((_, firing),) = loader.wheel.advance(loader.database_now())
    fired = await store.ticks.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])
    assert fired.moved == {job.id}
    await loader.run_once()
    loader.follow([firing], fired.moved)
    assert len(loader.wheel) == 1
    await fake_clock.advance(1)
    ((_, following),) = loader.wheel.advance(loader.database_now())
    assert following.job.tick == firing.next_tick
