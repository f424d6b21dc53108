"""Ticks whose previous run is still open: the six overlap policies, on the real store with a manual clock."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from foliot.clock import Clock
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.outcome import Outcome
from foliot.model.run import Cancel, Claim
from foliot.model.states import RunState
from foliot.model.workflow import Step, plan
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store import ticks
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job
from tests.support.runs import claim_runs
from tests.support.schedulers import Node, outcomes

WORKER = new_id()


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


async def end_runs(store: Store) -> int:
    claims = await claim_runs(store, WORKER, {"default": 1000}, ["t"])
    return await store.outcomes.finish_runs(WORKER, [Outcome(c.run_id, c.token, RunState.SUCCEEDED) for c in claims])


async def test_skip_notes_the_run_in_the_way(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="10s")
    for _ in range(3):
        await node.pass_time(10)
    ticks = await store.ticks.list_ticks(job.id, 10)
    assert [tick.outcome for tick in ticks] == ["overlap", "overlap", "ready"]
    assert {tick.blocked_by for tick in ticks[:2]} == {ticks[2].run_id}
    assert await end_runs(store) == 1
    await node.pass_time(10)
    assert await outcomes(store, job) == ["succeeded", "overlap", "overlap", "ready"]


async def test_a_retrying_run_is_still_open(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="10s")
    await node.pass_time(10)
    (claim,) = await claim_runs(store, WORKER, {"default": 1}, ["t"])
    await store.outcomes.retry_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SCHEDULED, "error", 60.0)])
    await node.pass_time(10)
    assert await outcomes(store, job) == ["scheduled", "overlap"]


async def test_allow_all_starts_every_tick(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
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


async def test_buffer_all_runs_ticks_one_after_the_other(
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


async def start_run(store: Store, worker: UUID = WORKER) -> Claim:
    (claim,) = await claim_runs(store, worker, {"default": 1}, ["t"])
    return claim


async def test_buffer_all_keeps_a_bounded_number_waiting(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticks, "BUFFER_MAX", 2)
    job = await make_job(store, every="10s", overlap="buffer_all")
    for _ in range(5):
        await node.pass_time(10)
    assert await outcomes(store, job) == ["ready", "held", "held", "overlap", "overlap"]


async def test_cancel_other_cancels_the_open_run_and_starts_after_it(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="10s", overlap="cancel_other")
    await node.pass_time(10)
    await store.workers.register_worker(WORKER, "w", {}, [])
    claim = await start_run(store)
    assert (await store.workers.beat(WORKER, [(claim.run_id, claim.token)])).to_end == {}
    await node.pass_time(10)
    assert await outcomes(store, job) == ["running", "held"]
    asked = (await store.workers.beat(WORKER, [(claim.run_id, claim.token)])).to_end[claim.run_id, claim.token]
    latest = (await store.ticks.list_ticks(job.id, 1))[0].run_id
    assert asked == Cancel("overlap", f"run {latest} of the next tick takes its place")
    # The run of the next tick replaces the waiting one; only one of them remains.
    await node.pass_time(10)
    assert await outcomes(store, job) == ["running", "cancelled", "held"]
    await store.outcomes.finish_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.CANCELLED, "overlap")])
    await node.turn()
    assert await outcomes(store, job) == ["cancelled", "cancelled", "ready"]


async def test_cancel_other_does_not_wait_for_a_run_without_a_worker(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    job = await make_job(store, every="10s", overlap="cancel_other")
    for _ in range(2):
        await node.pass_time(10)
        await node.turn()
    assert await outcomes(store, job) == ["cancelled", "ready"]
    assert await sql.fetchval("select reason from foliot.history") == "overlap"


async def test_terminate_other_starts_at_once_and_fences_the_open_run_off(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="10s", overlap="terminate_other")
    await store.workers.register_worker(WORKER, "w", {}, [])
    await node.pass_time(10)
    claim = await start_run(store)
    await node.pass_time(10)
    assert await outcomes(store, job) == ["cancelled", "ready"]
    # Its worker is notified, and its result is refused.
    assert (await store.workers.beat(WORKER, [(claim.run_id, claim.token)])).to_end == {
        (claim.run_id, claim.token): None
    }
    assert await store.outcomes.finish_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED)]) == 0
    assert await outcomes(store, job) == ["cancelled", "ready"]


@pytest.mark.parametrize("how", ["retried", "released", "lost"])
async def test_a_cancelled_run_never_starts_again(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, how: str
) -> None:
    job = await make_job(store, every="1h", overlap="cancel_other")
    await node.pass_time(3600)
    claim = await start_run(store)
    assert await store.cancellation.mark_cancelled([claim.run_id], "enough", is_forced=False) == {claim.run_id: WORKER}
    match how:
        case "retried":
            await store.outcomes.retry_runs(
                WORKER, [Outcome(claim.run_id, claim.token, RunState.SCHEDULED, "error", 1.0)]
            )
        case "released":
            await store.outcomes.release_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.READY)])
        case _:
            await store.workers.remove_worker(WORKER)
            assert (await store.lost_runs.lose_runs(10, 3)).requeued == 1
    await node.turn()
    assert await outcomes(store, job) == ["cancelled"]
    view = await store.runs.get_run(claim.run_id)
    assert view is not None
    assert (view.reason, view.error) == ("cancelled", {"kind": "Cancelled", "message": "enough"})


async def test_a_tick_that_is_skipped_does_not_use_up_a_run(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    job = await make_job(store, every="10s")
    await sql.execute("update foliot.jobs set runs_left = 2")
    for _ in range(3):
        await node.pass_time(10)
    assert await outcomes(store, job) == ["ready", "overlap", "overlap"]
    assert await sql.fetchval("select runs_left from foliot.jobs") == 1
    await end_runs(store)
    await node.pass_time(10)
    assert await sql.fetchrow("select runs_left, fire_at from foliot.jobs") == (0, None)


async def test_a_workflow_is_open_until_its_last_step_has_ended(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    job = await make_job(store, every="10s")
    await node.pass_time(10)
    (claim,) = await claim_runs(store, WORKER, {"default": 1}, ["t"])
    steps = plan(
        [Step(key="first", task="t", queue="default"), Step(key="second", task="t", queue="default", after=("first",))]
    )
    assert await store.workflows.expand_workflow(claim.run_id, claim.token, WORKER, steps, "continue", Namespace()) == {
        "default"
    }
    await node.pass_time(10)
    assert await end_runs(store) == 1
    await node.pass_time(10)
    assert await outcomes(store, job) == ["waiting", "overlap", "overlap"]
    assert await end_runs(store) == 1
    await node.pass_time(10)
    assert await outcomes(store, job) == ["succeeded", "overlap", "overlap", "ready"]
