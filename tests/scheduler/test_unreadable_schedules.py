"""A schedule that this node can't read, because a newer version stored it or its zone is unknown here, holds up no
other job."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from foliot.clock import Clock
from foliot.events import Event, ScheduleUnreadable
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
async def test_the_other_jobs_fire(
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
    # Mended, it goes on by itself.
    await sql.execute(
        """update foliot.jobs set schedule = '{"every": "10s"}', version = version + 1 where id = $1""", bad.id
    )
    await node.pass_time(10)
    assert await sql.fetchval("select count(*) from foliot.runs where job_id = $1", bad.id) == 1


async def test_a_pause_of_another_job_ends(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any, seen: list[Event]
) -> None:
    jobs = [await make_job(store, every="10s", overlap="allow_all") for _ in range(3)]
    for job in jobs:
        await store.jobs.pause_job(job.id, None, fake_clock.now() + timedelta(seconds=15))
    await sql.execute("update foliot.jobs set schedule = $2::text::jsonb where id = $1", jobs[0].id, UNREADABLE_CRON)
    for _ in range(4):
        await node.pass_time(10)
    assert [await outcomes(store, job) for job in jobs[1:]] == [["paused", "ready", "ready"]] * 2
    assert [event.job_id for event in seen if isinstance(event, ScheduleUnreadable)] == [jobs[0].id]


async def test_other_jobs_follow_new_rules_of_their_zones(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    good = await make_job(store, cron="0 9 * * *", timezone="Europe/Berlin")
    bad = await make_job(store, cron="0 9 * * *", timezone="Europe/Berlin")
    # As another node with other rules found both; and one is in a zone that this node does not know.
    await sql.execute(
        "update foliot.jobs set next_at = next_at - interval '1 hour', fire_at = fire_at - interval '1 hour', utc_offset = 7200"
    )
    await sql.execute(
        """update foliot.jobs set schedule = schedule || '{"timezone": "Europe/Atlantis"}' where id = $1""", bad.id
    )
    await keeper.run_once()
    await node.replanner.on_start()
    await node.replanner.run_once()
    found = await store.jobs.get_job(good.id, "")
    assert found is not None
    assert found.next_at == good.next_at
