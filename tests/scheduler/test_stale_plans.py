"""Plans that can't be carried out: what is no longer so is not written, and what failed is planned again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.clock import Clock
from foliot.errors import StoreUnavailable
from foliot.events import EventBus
from foliot.model.job import RecurringJob, resumed
from foliot.scheduler import firer
from foliot.scheduler.firer import Firer
from foliot.scheduler.loader import Loader
from foliot.scheduler.planner import Planner
from foliot.scheduler.resumer import Resumer
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.jobs import Fired
from foliot.store.store import Store
from foliot.triggers.base import to_instant
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job
from tests.support.ticks import assert_sound


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


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


async def test_a_pause_that_is_prolonged_as_it_ends_goes_on(
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


async def test_notes_of_a_stale_plan_are_not_written_with_the_firing_of_a_current_one(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, sql: Any
) -> None:
    # As on a node that was slow for longer than the grace: its wheel holds an old plan of the job and the current one,
    # both due.
    job = await make_job(store, every="10s", overlap="allow_all", catchup="none", grace_seconds=1)
    await fake_clock.advance(35)
    await keeper.run_once()
    ((due,), _) = await store.jobs.due_jobs([job.shard], 10, 0.0)
    stale = Planner(to_instant(await store.jobs.database_now())).firing_of(due)
    assert len(stale.notes) == 1
    assert (await store.jobs.fire_ticks(keeper.scheduler_id, keeper.epochs, [stale])).moved != frozenset()
    await fake_clock.advance(5)
    ((due,), _) = await store.jobs.due_jobs([job.shard], 10, 0.0)
    fresh = Planner(to_instant(await store.jobs.database_now())).firing_of(due)
    assert (await store.jobs.fire_ticks(keeper.scheduler_id, keeper.epochs, [stale, fresh])).fired == 1
    await assert_sound(sql)


async def test_a_batch_that_fails_does_not_take_the_ones_after_it_along(
    store: Store,
    fake_clock: FakeClock,
    keeper: ShardKeeper,
    events: EventBus,
    sql: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(firer, "BATCH", 2)
    loader = Loader(store=store, shards=keeper, clock=fake_clock, events=events)
    firing = Firer(store=store, shards=keeper, loader=loader, clock=fake_clock, events=events, lead_seconds=0)
    for _ in range(6):
        await make_job(store, every="10s", overlap="allow_all")
    await fake_clock.advance(10)
    await keeper.run_once()
    await loader.run_once()
    fire_ticks = store.jobs.fire_ticks

    async def fail_once(*_: object) -> Fired:
        monkeypatch.setattr(store.jobs, "fire_ticks", fire_ticks)
        raise StoreUnavailable("PostgreSQL: fire_ticks: gone for a while")

    monkeypatch.setattr(store.jobs, "fire_ticks", fail_once)
    with pytest.raises(StoreUnavailable):
        await firing.run_once()
    await loader.run_once()
    await firing.run_once()
    assert await sql.fetchval("select count(*) from foliot.runs") == 6


async def test_what_is_late_and_fails_does_not_take_along_what_is_due_in_a_moment(
    store: Store,
    fake_clock: FakeClock,
    keeper: ShardKeeper,
    events: EventBus,
    sql: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both came out of the wheel together. What was not got to stood in nobody's list any more, and its job never fired
    again."""
    loader = Loader(store=store, shards=keeper, clock=fake_clock, events=events)
    firing = Firer(store=store, shards=keeper, loader=loader, clock=fake_clock, events=events, lead_seconds=5)
    for every in ("10s", "11s", "12s"):
        await make_job(store, every=every, overlap="allow_all")
    await fake_clock.advance(10.5)
    await keeper.run_once()
    await loader.run_once()
    assert loader.wheel is not None
    assert len(loader.wheel) == 3
    fire_ticks = store.jobs.fire_ticks

    async def fail(*_: object) -> Fired:
        raise StoreUnavailable("PostgreSQL: fire_ticks: gone for a while")

    monkeypatch.setattr(store.jobs, "fire_ticks", fail)
    with pytest.raises(StoreUnavailable):
        await firing.run_once()
    monkeypatch.setattr(store.jobs, "fire_ticks", fire_ticks)
    await fake_clock.advance(2)
    await keeper.run_once()
    await loader.run_once()
    await firing.run_once()
    assert await sql.fetchval("select count(*) from foliot.runs") == 3


async def test_a_job_that_is_read_between_its_firing_and_the_news_of_it_is_in_the_wheel_once(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, events: EventBus
) -> None:
    job = await make_job(store, every="1s", overlap="allow_all")
    loader = Loader(store=store, shards=keeper, clock=fake_clock, events=events)
    await loader.run_once()
    assert loader.wheel is not None
    await fake_clock.advance(1)
    ((_, firing),) = loader.wheel.advance(loader.database_now())
    fired = await store.jobs.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])
    assert fired.moved == {job.id}
    await loader.run_once()
    loader.follow([firing], fired.moved)
    assert len(loader.wheel) == 1
    await fake_clock.advance(1)
    ((_, following),) = loader.wheel.advance(loader.database_now())
    assert following.job.tick == firing.next_tick
