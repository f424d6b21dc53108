"""The database's clock is set back or forward: promises to live and dead workers still hold. See
docs/reliability.md."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import ClockSetBack, Event, EventBus
from foliot.model.circuit_breaker import Circuit
from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.scheduler.gatekeeper import Gatekeeper
from foliot.scheduler.planner import Planner
from foliot.scheduler.reaper import Reaper
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.triggers.base import to_instant
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job
from tests.support.runs import WORKER, claim, insert

HOUR = 3600.0
STEPS = [5.0, HOUR, 400 * 24 * HOUR]


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock(datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0))


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
def reaper(store: Store, config: Config, fake_clock: FakeClock, events: EventBus) -> Reaper:
    return Reaper(store=store, config=config, clock=fake_clock, events=events)


async def state_of(store: Store, run_id: Any) -> RunState:
    view = await store.runs.get_run(run_id)
    assert view is not None
    return view.state


class TestSetBack:
    @pytest.mark.parametrize("step", STEPS)
    async def test_runs_of_a_dead_worker_come_back_as_soon_as_usual(
        self, store: Store, fake_clock: FakeClock, reaper: Reaper, config: Config, seen: list[Event], step: float
    ) -> None:
        run_id = await insert(store)
        await claim(store)
        fake_clock.step_database(-step)
        await reaper.run_once()
        assert await state_of(store, run_id) is RunState.RUNNING, "its lease is not over yet"
        assert [round(event.seconds) for event in seen if isinstance(event, ClockSetBack)] == [round(step)]
        await fake_clock.advance(config.worker_ttl_seconds + 1)
        await reaper.run_once()
        assert await state_of(store, run_id) is RunState.READY
        assert len([event for event in seen if isinstance(event, ClockSetBack)]) == 1, "told once"

    async def test_a_live_worker_keeps_its_runs(
        self, store: Store, fake_clock: FakeClock, reaper: Reaper, config: Config
    ) -> None:
        run_id = await insert(store)
        (mine,) = await claim(store)
        fake_clock.step_database(-HOUR)
        for _ in range(10):
            assert (await store.workers.beat(WORKER, [(mine.run_id, mine.token)])).is_renewed
            await reaper.run_once()
            await fake_clock.advance(config.worker_ttl_seconds / 3)
            await reaper.run_once()
        assert await state_of(store, run_id) is RunState.RUNNING
        assert await store.outcomes.finish_runs(WORKER, [Outcome(mine.run_id, mine.token, RunState.SUCCEEDED)]) == 1

    @pytest.mark.parametrize("step", STEPS)
    async def test_shards_of_a_dead_node_go_to_others_as_soon_as_usual(
        self, store: Store, fake_clock: FakeClock, config: Config, events: EventBus, reaper: Reaper, step: float
    ) -> None:
        dead, other = [ShardKeeper(store=store, config=config, clock=fake_clock, events=events) for _ in range(2)]
        await dead.run_once()
        assert len(dead.epochs) == 100
        fake_clock.step_database(-step)
        await reaper.run_once()
        await other.run_once()
        assert len(other.epochs) == 0, "it may live"
        await fake_clock.advance(config.shard_ttl_seconds + 1)
        await other.run_once()
        await other.run_once()
        assert len(other.epochs) == 100

    async def test_a_live_node_keeps_its_shards_and_epochs(
        self, store: Store, fake_clock: FakeClock, config: Config, events: EventBus, reaper: Reaper
    ) -> None:
        keeper = ShardKeeper(store=store, config=config, clock=fake_clock, events=events)
        await keeper.run_once()
        before = keeper.epochs
        fake_clock.step_database(-HOUR)
        for _ in range(5):
            await reaper.run_once()
            await fake_clock.advance(config.shard_renew_seconds)
            await keeper.run_once()
        assert keeper.epochs == before

    async def test_a_rate_continues_after_its_period_and_is_not_exceeded(
        self, store: Store, sql: Any, fake_clock: FakeClock, events: EventBus, reaper: Reaper
    ) -> None:
        gatekeeper = Gatekeeper(store=store, clock=fake_clock, events=events)
        for _ in range(6):
            await insert(store, options='{"rate": {"key": "k", "limit": 2, "period_seconds": 10}}')

        async def ready() -> int:
            await gatekeeper.run_once()
            found: int = await sql.fetchval("select count(*) from foliot.runs where state = 'ready'")
            return found

        await store.workers.register_worker(new_id(), "w", {"mail": 1}, ["send_invoice"])
        assert await ready() == 2
        fake_clock.step_database(-HOUR)
        await reaper.run_once()
        assert await ready() == 2, "a rate is never exceeded because a clock was set"
        await fake_clock.advance(11)
        assert await ready() == 4
        await fake_clock.advance(11)
        assert await ready() == 6

    async def test_an_open_circuit_is_probed_at_the_original_time(
        self, store: Store, sql: Any, fake_clock: FakeClock, reaper: Reaper
    ) -> None:
        await store.workers.register_worker(new_id(), "w", {"mail": 1}, ["send_invoice"])
        await store.circuit_breaker.record_failures(
            {"send_invoice": 5}, {"send_invoice": Circuit(failures=5, seconds=30)}
        )
        await insert(store)
        fake_clock.step_database(-HOUR)
        await reaper.run_once()
        assert not (await store.pending_work.gates_in_use()).circuits
        await fake_clock.advance(31)
        assert (await store.pending_work.gates_in_use()).circuits

    async def test_stored_instants_do_not_change(self, store: Store, fake_clock: FakeClock) -> None:
        """Delays, retries and expiries are stored as instants, and follow the clock as it is now."""
        delayed = await insert(store, delay_seconds=60.0)
        await fake_clock.advance(30)
        fake_clock.step_database(-HOUR)
        await fake_clock.advance(60)
        assert await store.due_runs.promote_due_runs(10) == []
        await fake_clock.advance(HOUR)
        assert len(await store.due_runs.promote_due_runs(10)) == 1
        assert await state_of(store, delayed) is RunState.READY

    async def test_a_key_is_never_kept_for_less_than_configured(self, store: Store, fake_clock: FakeClock) -> None:
        async def work(within: Transaction) -> str:
            return '{"n": 1}'

        assert (await store.idempotency.once("k", "f", work)).is_new
        fake_clock.step_database(-HOUR)
        assert not (await store.idempotency.once("k", "f", work)).is_new

    async def test_no_tick_fires_twice(
        self, store: Store, sql: Any, fake_clock: FakeClock, config: Config, events: EventBus
    ) -> None:
        keeper = ShardKeeper(store=store, config=config, clock=fake_clock, events=events)
        await make_job(store, every="1m", overlap="allow_all")
        await keeper.run_once()

        async def fire() -> int:
            await keeper.run_once()
            now = await store.jobs.database_now()
            due, _ = await store.ticks.due_jobs(list(range(100)), 10, 0.0)
            planner = Planner(to_instant(now))
            return (
                await store.ticks.fire_ticks(
                    keeper.scheduler_id, keeper.epochs, [planner.firing_of(job) for job in due]
                )
            ).fired

        await fake_clock.advance(60)
        assert await fire() == 1
        fake_clock.step_database(-180)
        fired = 0
        for _ in range(4):
            await fake_clock.advance(60)
            fired += await fire()
        assert fired == 1
        assert await sql.fetchval("select count(*) = count(distinct tick_at) from foliot.runs")


class TestSetForward:
    @pytest.mark.parametrize("step", STEPS[1:])
    async def test_runs_of_live_workers_are_released_and_end_once(
        self, store: Store, sql: Any, fake_clock: FakeClock, reaper: Reaper, step: float
    ) -> None:
        runs = [await insert(store) for _ in range(5)]
        held = await claim(store, count=5)
        fake_clock.step_database(step)
        await reaper.run_once()
        assert not (await store.workers.beat(WORKER, [(one.run_id, one.token) for one in held])).is_renewed, (
            "it learns of it"
        )
        other = new_id()
        again = await claim(store, count=5, worker=other)
        assert {one.run_id for one in again} == set(runs), "nothing is lost"
        outcomes = [Outcome(one.run_id, one.token, RunState.SUCCEEDED) for one in held]
        assert await store.outcomes.finish_runs(WORKER, outcomes) == 0, (
            "the attempts that were given back write nothing"
        )
        outcomes = [Outcome(one.run_id, one.token, RunState.SUCCEEDED) for one in again]
        assert await store.outcomes.finish_runs(other, outcomes) == 5
        assert await sql.fetchval("select count(*) from foliot.history") == 5

    async def test_a_node_that_lost_its_shards_fires_nothing(
        self, store: Store, sql: Any, fake_clock: FakeClock, config: Config, events: EventBus
    ) -> None:
        first, second = [ShardKeeper(store=store, config=config, clock=fake_clock, events=events) for _ in range(2)]
        await first.run_once()
        believed = first.epochs
        fake_clock.step_database(HOUR)
        await second.run_once()
        assert len(second.epochs) == 100
        await make_job(store, every="1m", now=fake_clock.now() - timedelta(minutes=5))
        due, _ = await store.ticks.due_jobs(list(range(100)), 10, 0.0)
        firings = [Planner(to_instant(await store.jobs.database_now())).firing_of(job) for job in due]
        assert len(firings) == 1
        assert (await store.ticks.fire_ticks(first.scheduler_id, believed, firings)).moved == frozenset()
        assert len((await store.ticks.fire_ticks(second.scheduler_id, second.epochs, firings)).moved) == 1
