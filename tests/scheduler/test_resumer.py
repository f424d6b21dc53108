"""Pauses end on time, and an operator who intervenes wins."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.clock import Clock
from foliot.events import Event, EventBus, ScheduleUnreadable
from foliot.model.job import RecurringJob, resumed
from foliot.scheduler.resumer import Resumer
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job
from tests.support.schedulers import Node, outcomes

UNREADABLE_CRON = '{"cron": "fortnightly 0 9 * * *"}'


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


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


async def current(store: Store, job_id: UUID) -> RecurringJob:
    job = await store.jobs.get_job(job_id, "")
    assert job is not None
    return job


async def test_a_pause_that_ends_by_itself_does_not_end_the_next_one(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, events: EventBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await make_job(store, every="10s")
    await store.jobs.pause_job(job.id, "a short one", fake_clock.now() + timedelta(seconds=5))
    await fake_clock.advance(5)
    find = store.jobs.jobs_to_resume

    async def meet_an_operator() -> list[UUID]:
        found = await find()
        assert await store.jobs.resume_job(*resumed(await current(store, job.id), fake_clock.now()))
        assert await store.jobs.pause_job(job.id, "until further notice", None)
        return found

    monkeypatch.setattr(store.jobs, "jobs_to_resume", meet_an_operator)
    await Resumer(store=store, shards=keeper, clock=fake_clock, events=events).run_once()
    assert (await current(store, job.id)).paused_reason == "until further notice"


async def test_a_pause_extended_as_it_ends_continues(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, events: EventBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await make_job(store, every="10s")
    await store.jobs.pause_job(job.id, "a short one", fake_clock.now() + timedelta(seconds=5))
    await fake_clock.advance(5)
    resume = store.jobs.resume_job

    async def meet_an_operator(*arguments: Any) -> bool:
        assert await store.jobs.pause_job(job.id, "a longer one", fake_clock.now() + timedelta(hours=1))
        return await resume(*arguments)

    monkeypatch.setattr(store.jobs, "resume_job", meet_an_operator)
    await Resumer(store=store, shards=keeper, clock=fake_clock, events=events).run_once()
    assert (await current(store, job.id)).paused_reason == "a longer one"


async def test_a_pause_with_an_end_ends_by_itself(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="10s", overlap="allow_all")
    await store.jobs.pause_job(job.id, None, fake_clock.now() + timedelta(seconds=15))
    for _ in range(4):
        await node.pass_time(10)
    assert await outcomes(store, job) == ["paused", "ready", "ready"]


async def test_a_pause_stops_firing_and_its_ticks_become_one_note(
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
    last, first = await store.ticks.list_ticks(job.id, 10)
    assert last.outcome == "ready"
    assert (first.outcome, first.tick_at) == ("paused", job.next_at)
    assert first.until_at == fake_clock.now().replace(second=30)
