"""Ticks become runs exactly once, under epochs that are in force, and what does not become one says why."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.job import resumed, scheduled_from
from foliot.model.outcome import Outcome
from foliot.model.schedule import Schedule
from foliot.model.states import RunState
from foliot.scheduler.firer import Firer, Resumer
from foliot.scheduler.loader import Loader, Planner
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from foliot.triggers.base import to_instant
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job

WORKER = new_id()


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
async def keeper(store: Store, config: Config, events: EventBus, fake_clock: FakeClock) -> ShardKeeper:
    keeper = ShardKeeper(store=store, config=config, clock=fake_clock, events=events)
    await keeper.run_once()
    return keeper


class Node:
    """A scheduler node that is turned by hand."""

    def __init__(self, store: Store, keeper: ShardKeeper, events: EventBus, clock: FakeClock) -> None:
        self._clock = clock
        self._keeper = keeper
        self._loader = Loader(store=store, shards=keeper, clock=clock, events=events)
        self._firer = Firer(store=store, shards=keeper, loader=self._loader, clock=clock, events=events)
        self._resumer = Resumer(store=store, shards=keeper, clock=clock, events=events)

    async def turn(self) -> None:
        """Everything that is due now, also what became due by what was done."""
        await self._resumer.run_once()
        await self._loader.run_once()
        while await self._firer.run_once() == 0:
            await self._loader.run_once()

    async def pass_time(self, seconds: float) -> None:
        await self._clock.advance(seconds)
        await self._keeper.run_once()
        await self.turn()


@pytest.fixture
def node(store: Store, keeper: ShardKeeper, events: EventBus, fake_clock: FakeClock) -> Node:
    return Node(store, keeper, events, fake_clock)


async def outcomes(store: Store, job: Any) -> list[str]:
    return [tick.outcome for tick in await store.jobs.list_ticks(job.id, 200)][::-1]


async def end_runs(store: Store) -> int:
    claims = await store.runs.claim_runs(WORKER, {"default": 1000}, ["t"])
    return await store.runs.finish_runs(WORKER, [Outcome(c.run_id, c.token, RunState.SUCCEEDED) for c in claims])


async def test_a_tick_fires_at_its_instant_and_not_before(store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node) -> None:
    job = await make_job(store, every="10s")
    await node.pass_time(9.9)
    assert await outcomes(store, job) == []
    await node.pass_time(0.1)
    (tick,) = await store.jobs.list_ticks(job.id, 10)
    assert (tick.outcome, tick.tick_at) == ("ready", job.next_at)


async def test_skip_notes_the_run_in_the_way(store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node) -> None:
    job = await make_job(store, every="10s")
    for _ in range(3):
        await node.pass_time(10)
    ticks = await store.jobs.list_ticks(job.id, 10)
    assert [tick.outcome for tick in ticks] == ["overlap", "overlap", "ready"]
    assert {tick.blocked_by for tick in ticks[:2]} == {ticks[2].run_id}
    assert await end_runs(store) == 1
    await node.pass_time(10)
    assert await outcomes(store, job) == ["succeeded", "overlap", "overlap", "ready"]


async def test_a_retrying_run_is_still_open(store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node) -> None:
    job = await make_job(store, every="10s")
    await node.pass_time(10)
    (claim,) = await store.runs.claim_runs(WORKER, {"default": 1}, ["t"])
    await store.runs.retry_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SCHEDULED, "error", 60.0)])
    await node.pass_time(10)
    assert await outcomes(store, job) == ["scheduled", "overlap"]


async def test_allow_all_starts_every_tick(store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node) -> None:
    job = await make_job(store, every="10s", overlap="allow_all")
    for _ in range(3):
        await node.pass_time(10)
    assert await outcomes(store, job) == ["ready", "ready", "ready"]


async def test_buffer_one_keeps_the_first_waiting_and_drops_later_ones(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="10s", overlap="buffer_one")
    for _ in range(3):
        await node.pass_time(10)
    assert await outcomes(store, job) == ["ready", "held", "overlap"]
    await end_runs(store)
    await node.turn()
    assert await outcomes(store, job) == ["succeeded", "ready", "overlap"]


async def test_buffer_all_runs_them_one_after_the_other_in_order(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="10s", overlap="buffer_all")
    for _ in range(4):
        await node.pass_time(10)
    expected = ["ready", "held", "held", "held"]
    for number in range(4):
        assert await outcomes(store, job) == expected
        await end_runs(store)
        await node.turn()
        expected[number] = "succeeded"
        if number < 3:
            expected[number + 1] = "ready"


async def test_a_stale_epoch_fires_nothing(store: Store, fake_clock: FakeClock, keeper: ShardKeeper, sql: Any) -> None:
    job = await make_job(store, every="10s")
    await fake_clock.advance(10)
    _, (due,) = await store.jobs.due_jobs([job.shard], 10, 0.0)
    firing = Planner(to_instant(fake_clock.now())).firing_of(due)
    stale = {job.shard: keeper._epochs[job.shard] - 1}
    await keeper.run_once()
    assert (await store.jobs.fire_ticks(keeper.scheduler_id, stale, [firing])).moved == 0
    assert (await store.jobs.fire_ticks(new_id(), keeper.epochs, [firing])).moved == 0
    assert (await store.jobs.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).fired == 1
    assert (await store.jobs.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).moved == 0
    assert await sql.fetchval("select count(*) from foliot.runs") == 1


async def test_a_node_whose_lease_is_over_fires_nothing(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    await make_job(store, every="10s")
    await fake_clock.advance(30)
    assert keeper.epochs == {}
    await node.turn()
    assert await sql.fetchval("select count(*) from foliot.runs") == 0


async def test_an_edit_affects_only_ticks_after_it(store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any) -> None:
    job = await make_job(store, every="10s", overlap="allow_all")
    await fake_clock.advance(10)
    _, (due,) = await store.jobs.due_jobs([job.shard], 10, 0.0)
    changed = replace(job, schedule=Schedule(every="60s", overlap="allow_all", start_at=fake_clock.now()))
    assert await store.jobs.change_job(job, scheduled_from(changed, fake_clock.now()), job.next_at, job.next_at) == 2
    # What was read before the edit can't fire any more.
    await keeper.run_once()
    assert (
        await store.jobs.fire_ticks(keeper.scheduler_id, keeper.epochs, [Planner(to_instant(fake_clock.now())).firing_of(due)])
    ).moved == 0
    assert await store.jobs.change_job(job, changed, None, None) is None
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


async def test_a_pause_with_an_end_ends_by_itself(store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node) -> None:
    job = await make_job(store, every="10s", overlap="allow_all")
    await store.jobs.pause_job(job.id, None, fake_clock.now() + timedelta(seconds=15))
    for _ in range(4):
        await node.pass_time(10)
    assert await outcomes(store, job) == ["paused", "ready", "ready"]


async def test_the_runs_left_are_counted_down(store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any) -> None:
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
    _, (soon,) = await store.jobs.due_jobs([job.shard], 10, 2.0)
    firing = Planner(to_instant(fake_clock.now())).firing_of(soon)
    assert (await store.jobs.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).moved == 0
    await fake_clock.advance(1)
    assert (await store.jobs.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).fired == 1
