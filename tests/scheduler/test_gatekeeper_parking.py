"""Long lines of runs that cannot start are parked, so that claims do not step over them, and unparked when they can
start."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.clock import Clock
from foliot.events import EventBus
from foliot.model.circuit_breaker import Circuit
from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.run import Claim, NewRun
from foliot.model.states import RunState
from foliot.scheduler.gatekeeper import PARK_SECONDS, Gatekeeper
from foliot.store.parked_runs import HEAD, LONG
from foliot.store.queue_limits import QueueLimits
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.runs import claim_runs

WORKER = new_id()


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
async def gatekeeper(store: Store, fake_clock: FakeClock, events: EventBus) -> Gatekeeper:
    await store.workers.register_worker(WORKER, "w", {"q": 10}, ["t", "u"])
    return Gatekeeper(store=store, clock=fake_clock, events=events)


async def insert(store: Store, number: int, task: str, **fields: Any) -> list[UUID]:
    runs = [NewRun(id=new_id(), task=task, queue="q", **fields) for _ in range(number)]
    await store.run_inserts.insert_runs(runs)
    return [run.id for run in runs]


async def claim(store: Store, slots: int = 10) -> list[Claim]:
    return await claim_runs(store, WORKER, {"q": slots}, ["t", "u"])


async def turn(gatekeeper: Gatekeeper, fake_clock: FakeClock) -> None:
    """Runs the gatekeeper until nothing more moves."""
    await fake_clock.advance(PARK_SECONDS)
    while await gatekeeper.run_once() == 0:
        pass


async def held(sql: Any) -> dict[str, int]:
    rows = await sql.fetch("select held_by, count(*) from foliot.runs where state = 'held' group by held_by")
    return {row[0]: row[1] for row in rows}


async def test_runs_of_a_paused_task_are_parked_until_it_is_resumed(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, sql: Any
) -> None:
    await store.pauses.put_pause("task", "t", None, None, None)
    ids = await insert(store, HEAD + LONG, "t")
    (other,) = await insert(store, 1, "u")
    await turn(gatekeeper, fake_clock)
    assert await held(sql) == {"pause": HEAD + LONG}
    assert [one.run_id for one in await claim(store)] == [other]
    await store.pauses.delete_pause("task", "t")
    await turn(gatekeeper, fake_clock)
    assert await held(sql) == {}
    assert {one.run_id for one in await claim(store, 5)} == set(ids[:5])


async def test_a_short_line_is_not_parked(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, sql: Any
) -> None:
    await store.pauses.put_pause("task", "t", None, None, None)
    await insert(store, LONG - 1, "t")
    await turn(gatekeeper, fake_clock)
    assert await held(sql) == {}


async def test_the_end_of_a_pause_unparks_its_runs(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, sql: Any
) -> None:
    await store.pauses.put_pause("task", "t", fake_clock.now() + timedelta(seconds=60), None, None)
    await insert(store, LONG, "t")
    await turn(gatekeeper, fake_clock)
    assert await held(sql) == {"pause": LONG}
    await sql.execute("update foliot.workers set expires_at = expires_at + interval '10 minutes'")
    await fake_clock.advance(60)
    await turn(gatekeeper, fake_clock)
    assert await held(sql) == {}


async def test_runs_of_an_unknown_task_are_parked_until_a_worker_knows_it(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, sql: Any
) -> None:
    await insert(store, LONG, "unknown")
    await insert(store, 3, "t")
    await turn(gatekeeper, fake_clock)
    assert await held(sql) == {"no_worker": LONG}
    assert len(await claim(store)) == 3
    await store.workers.register_worker(new_id(), "other queue", {"other": 1}, ["unknown"])
    await turn(gatekeeper, fake_clock)
    assert await held(sql) == {"no_worker": LONG}
    await store.workers.register_worker(new_id(), "new", {"q": 1}, ["unknown"])
    await turn(gatekeeper, fake_clock)
    assert await held(sql) == {}


async def test_without_any_worker_everything_stays_ready(
    store: Store, fake_clock: FakeClock, events: EventBus, sql: Any
) -> None:
    await insert(store, LONG, "t")
    await turn(Gatekeeper(store=store, clock=fake_clock, events=events), fake_clock)
    assert await held(sql) == {}


async def test_the_probe_of_a_circuit_is_unparked_and_its_success_unparks_the_rest(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, sql: Any
) -> None:
    await store.circuit_breaker.record_failures({"t": 5}, {"t": Circuit(failures=5, seconds=2)})
    first, *_ = await insert(store, LONG, "t")
    await turn(gatekeeper, fake_clock)
    assert await held(sql) == {"circuit": LONG}
    await fake_clock.advance(2)
    await turn(gatekeeper, fake_clock)
    (probe,) = await claim(store)
    assert probe.run_id == first
    assert await held(sql) == {"circuit": LONG - 1}
    await store.outcomes.finish_runs(WORKER, [Outcome(probe.run_id, probe.token, RunState.SUCCEEDED)])
    await store.circuit_breaker.record_successes(["t"], [probe.run_id])
    await turn(gatekeeper, fake_clock)
    assert len(await claim(store)) == 10


async def test_parked_runs_count_for_the_depth_of_their_queue(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock
) -> None:
    await store.queues.put_queue("q", QueueLimits(max_depth=LONG + 10))
    await store.pauses.put_pause("task", "t", None, None, None)
    await insert(store, LONG, "t")
    await turn(gatekeeper, fake_clock)
    assert await store.queues.full_queues() == frozenset()
    await insert(store, 10, "u")
    assert await store.queues.full_queues() == {"q"}


async def test_a_claim_costs_the_same_with_many_parked_runs(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, sql: Any
) -> None:
    await store.pauses.put_pause("task", "t", None, None, None)
    await insert(store, HEAD, "t")
    await turn(gatekeeper, fake_clock)
    await sql.execute("vacuum analyze foliot.runs")
    await insert(store, 10, "u")
    rows = await sql.fetch(
        "explain (analyze, buffers off, costs off, timing off, summary off) "
        "select id from foliot.runs where state = 'ready' and queue = 'q' and task <> 't' order by rank limit 10"
    )
    assert not [row[0] for row in rows if "Rows Removed by Filter" in row[0]]
