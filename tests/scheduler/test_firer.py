"""Ticks become runs exactly once, under a current epoch, and other ticks get a reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from foliot.clock import Clock
from foliot.errors import StoreUnavailable
from foliot.events import EventBus
from foliot.model.ids import new_id, tick_run_id
from foliot.model.job import scheduled_from
from foliot.model.outcome import Outcome
from foliot.model.schedule import Schedule
from foliot.model.states import RunState
from foliot.model.tick import tick_of
from foliot.scheduler import firer
from foliot.scheduler.firer import Firer
from foliot.scheduler.loader import Loader
from foliot.scheduler.planner import Planner
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from foliot.store.ticks import Fired
from foliot.triggers.base import to_instant
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job
from tests.support.runs import claim_runs
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
    (tick,) = await store.ticks.list_ticks(job.id, 10)
    assert (tick.outcome, tick.tick_at) == ("ready", job.next_at)


async def test_a_stale_epoch_fires_nothing(store: Store, fake_clock: FakeClock, keeper: ShardKeeper, sql: Any) -> None:
    job = await make_job(store, every="10s")
    await fake_clock.advance(10)
    ((due,), _) = await store.ticks.due_jobs([job.shard], 10, 0.0)
    firing = Planner(to_instant(fake_clock.now())).firing_of(due)
    stale = {job.shard: keeper._epochs[job.shard] - 1}
    await keeper.run_once()
    assert (await store.ticks.fire_ticks(keeper.scheduler_id, stale, [firing])).moved == frozenset()
    assert (await store.ticks.fire_ticks(new_id(), keeper.epochs, [firing])).moved == frozenset()
    assert (await store.ticks.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).fired == 1
    assert (await store.ticks.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).moved == frozenset()
    assert await sql.fetchval("select count(*) from foliot.runs") == 1


async def test_a_node_with_an_expired_lease_fires_nothing(
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
    ((due,), _) = await store.ticks.due_jobs([job.shard], 10, 0.0)
    changed = replace(job, schedule=Schedule(every="60s", overlap="allow_all", start_at=fake_clock.now()))
    assert (
        await store.jobs.change_job(job, scheduled_from(changed, fake_clock.now()), job.next_at, job.next_at, None) == 2
    )
    # A plan from before the edit can no longer fire.
    await keeper.run_once()
    assert (
        await store.ticks.fire_ticks(
            keeper.scheduler_id, keeper.epochs, [Planner(to_instant(fake_clock.now())).firing_of(due)]
        )
    ).moved == frozenset()
    assert await store.jobs.change_job(job, changed, None, None, None) is None
    for _ in range(6):
        await node.pass_time(10)
    # A tick that was due but had not fired at the edit is noted.
    assert await outcomes(store, job) == ["superseded", "ready"]
    assert await sql.fetchval("select array_agg(version order by version) from foliot.job_versions") == [1, 2]


async def test_the_runs_left_are_counted_down(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    job = await make_job(store, every="10s", overlap="allow_all")
    await sql.execute("update foliot.jobs set runs_left = 2")
    for _ in range(5):
        await node.pass_time(10)
    assert await outcomes(store, job) == ["ready", "ready"]


async def test_a_failed_batch_does_not_stop_later_batches(
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
    fire_ticks = store.ticks.fire_ticks

    async def fail_once(*_: object) -> Fired:
        monkeypatch.setattr(store.ticks, "fire_ticks", fire_ticks)
        raise StoreUnavailable("PostgreSQL: fire_ticks: gone for a while")

    monkeypatch.setattr(store.ticks, "fire_ticks", fail_once)
    with pytest.raises(StoreUnavailable):
        await firing.run_once()
    await loader.run_once()
    await firing.run_once()
    assert await sql.fetchval("select count(*) from foliot.runs") == 6


async def test_a_failed_late_tick_does_not_stop_imminent_ticks(
    store: Store,
    fake_clock: FakeClock,
    keeper: ShardKeeper,
    events: EventBus,
    sql: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both left the wheel together. Jobs after a failure used to be forgotten, and never fired again."""
    loader = Loader(store=store, shards=keeper, clock=fake_clock, events=events)
    firing = Firer(store=store, shards=keeper, loader=loader, clock=fake_clock, events=events, lead_seconds=5)
    for every in ("10s", "11s", "12s"):
        await make_job(store, every=every, overlap="allow_all")
    await fake_clock.advance(10.5)
    await keeper.run_once()
    await loader.run_once()
    assert loader.wheel is not None
    assert len(loader.wheel) == 3
    fire_ticks = store.ticks.fire_ticks

    async def fail(*_: object) -> Fired:
        raise StoreUnavailable("PostgreSQL: fire_ticks: gone for a while")

    monkeypatch.setattr(store.ticks, "fire_ticks", fail)
    with pytest.raises(StoreUnavailable):
        await firing.run_once()
    monkeypatch.setattr(store.ticks, "fire_ticks", fire_ticks)
    await fake_clock.advance(2)
    await keeper.run_once()
    await loader.run_once()
    await firing.run_once()
    assert await sql.fetchval("select count(*) from foliot.runs") == 3


async def test_a_run_is_stored_with_its_tick_and_the_neighbouring_ticks(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, name="team/pulse", every="10s", timezone="Europe/Berlin")
    first = to_instant(job.next_at or fake_clock.now())
    for _ in range(2):
        await node.pass_time(10)
        await end_runs_of(store)
    found = [await store.runs.get_run(tick_run_id(job.id, first + offset)) for offset in (0, 10)]
    ticks = [tick_of(view.options) for view in found if view is not None]
    assert [(tick.at, tick.previous, tick.next) for tick in ticks if tick] == [
        (first, first - 10, first + 10),
        (first + 10, first, first + 20),
    ]
    assert {(tick.zone, tick.job, tick.job_id, tick.origin) for tick in ticks if tick} == {
        ("Europe/Berlin", "team/pulse", job.id, "schedule")
    }


async def end_runs_of(store: Store) -> None:
    worker = new_id()
    claims = await claim_runs(store, worker, {"default": 10}, ["t"])
    await store.outcomes.finish_runs(worker, [Outcome(one.run_id, one.token, RunState.SUCCEEDED) for one in claims])
