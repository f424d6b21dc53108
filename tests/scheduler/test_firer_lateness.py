"""A tick is due at its instant, however late a scheduler node handles it, and ticks skipped because of that have a
reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from foliot.clock import Clock
from foliot.model.ids import new_id, tick_run_id
from foliot.model.job import fire_of
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from foliot.triggers.base import to_datetime, to_instant
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job
from tests.support.runs import claim_runs
from tests.support.schedulers import Node, outcomes

WORKER = new_id()
RUNS = "select tick_at, due_at, created_at, rank from foliot.runs order by tick_at"


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


async def test_a_late_run_is_due_at_its_tick(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    job = await make_job(store, every="10s")
    assert job.next_at is not None
    await node.pass_time(17)
    ((tick_at, due_at, created_at, rank),) = await sql.fetch(RUNS)
    late = (fake_clock.now() - job.next_at).total_seconds()
    assert (tick_at, due_at) == (job.next_at, job.next_at)
    assert created_at == fake_clock.now()
    assert rank == to_instant(job.next_at) * 1_000_000
    # A worker claims it three seconds later. The wait of the attempt and the metrics count from the tick.
    await fake_clock.advance(3)
    (claim,) = await claim_runs(store, WORKER, {"default": 1}, ["t"])
    assert claim.waited_seconds == pytest.approx(late + 3)
    await store.outcomes.finish_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED)])
    recent = await store.metrics.measure_recent(fake_clock.now() - timedelta(hours=1), 100, (0.5,))
    assert recent.latencies is not None
    assert list(recent.latencies) == pytest.approx([late + 3])


async def test_the_oldest_waiting_run_counts_from_its_tick(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    job = await make_job(store, every="10s")
    assert job.next_at is not None
    await node.pass_time(18)
    (queue,) = [queue for queue in await store.overview.list_queues(None) if queue.name == "default"]
    assert queue.oldest_ready_seconds == pytest.approx((fake_clock.now() - job.next_at).total_seconds())


async def test_jitter_does_not_count_as_lateness(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    job = await make_job(store, every="10m", jitter_seconds=300)
    assert job.next_at is not None
    await node.pass_time(900)
    ((tick_at, due_at, _, _),) = await sql.fetch(RUNS)
    assert tick_at == job.next_at
    assert due_at == to_datetime(fire_of(job.schedule, job.id, to_instant(job.next_at)))


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("skip", ["ready", "missed", "missed", "missed", "missed"]),
        ("buffer_one", ["ready", "held", "missed", "missed", "missed"]),
        ("buffer_all", ["ready", "held", "held", "held", "held"]),
        ("allow_all", ["ready"] * 5),
    ],
)
async def test_ticks_without_a_node_are_missed_and_not_overlapped(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, overlap: str, expected: list[str]
) -> None:
    job = await make_job(store, every="1s", overlap=overlap)
    # The node does not run for five seconds, as if it had died.
    await node.pass_time(5.4)
    assert await outcomes(store, job) == expected
    ticks = (await store.ticks.list_ticks(job.id, 10))[::-1]
    assert {tick.decided_at for tick in ticks} == {fake_clock.now()}
    noted = [tick for tick in ticks if tick.outcome == "missed"]
    assert {tick.blocked_by for tick in noted} <= {ticks[0].run_id}
    # From here on the node is in time, and the open run is in the way.
    await node.pass_time(1)
    latest = (await store.ticks.list_ticks(job.id, 1))[0]
    assert latest.outcome == {"allow_all": "ready", "buffer_all": "held"}.get(overlap, "overlap")
    assert latest.decided_at - latest.tick_at < timedelta(seconds=1)


async def test_a_run_that_was_open_before_the_nodes_died_overlaps(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="1s")
    await node.pass_time(1)
    await node.pass_time(4)
    assert await outcomes(store, job) == ["ready", "overlap", "overlap", "overlap", "overlap"]


async def test_a_triggered_run_overlaps(store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node) -> None:
    job = await make_job(store, every="10s")
    await fake_clock.advance(10.5)
    await store.jobs.insert_triggered_run(new_id(), job.id)
    await node.pass_time(0.5)
    assert [tick.outcome for tick in await store.ticks.list_ticks(job.id, 10)] == ["ready", "overlap"]


async def test_a_backfilled_run_is_due_at_the_request(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    job = await make_job(store, every="10s")
    assert job.next_at is not None
    tick = to_instant(job.next_at) - 86_400 * 90
    await store.backfill.insert_backfill(job.id, {tick_run_id(job.id, tick): to_datetime(tick)}, RunState.READY)
    ((tick_at, due_at, created_at, _),) = await sql.fetch(RUNS)
    assert (tick_at, due_at) == (to_datetime(tick), created_at)
    (claim,) = await claim_runs(store, WORKER, {"default": 1}, ["t"])
    assert claim.waited_seconds == 0


async def test_caught_up_runs_rank_at_most_a_minute_ahead(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    await make_job(store, every="1h", overlap="allow_all", catchup="all")
    await node.pass_time(3 * 3600)
    rows = await sql.fetch(RUNS)
    assert [row["due_at"] for row in rows] == [row["tick_at"] for row in rows]
    earliest = int((fake_clock.now() - timedelta(minutes=1)).timestamp() * 1_000_000)
    assert len(rows) == 3
    assert min(row["rank"] for row in rows) >= earliest - 1


async def test_a_dependent_of_a_late_tick_is_due_when_its_upstreams_have_ended(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    job = await make_job(store, every="1h", catchup="all", after=("upstream",))
    await sql.execute('update foliot.jobs set schedule = schedule || \'{"after": ["upstream"]}\'')
    await node.pass_time(2 * 3600 - 1)
    ((tick_at, due_at, _, rank),) = await sql.fetch(RUNS)
    assert tick_at == due_at == job.next_at
    # Its rank follows its due time once it is released.
    assert rank == to_instant(tick_at) * 1_000_000
