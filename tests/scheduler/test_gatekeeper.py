"""Limits, pauses and circuits on the real store: which runs start, which wait, and that none is forgotten."""

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
from foliot.model.run import Claim, NewRun, RunView
from foliot.model.states import RunState
from foliot.scheduler.gatekeeper import Gatekeeper
from foliot.store.pauses import PauseKind
from foliot.store.queue_limits import QueueLimits
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.runs import claim_runs

WORKER = new_id()


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
def gatekeeper(store: Store, fake_clock: FakeClock, events: EventBus) -> Gatekeeper:
    return Gatekeeper(store=store, clock=fake_clock, events=events)


async def insert(
    store: Store, number: int = 1, *, options: str | None = None, task: str = "t", queue: str = "q", **fields: Any
) -> list[UUID]:
    runs = [NewRun(id=new_id(), task=task, queue=queue, options=options, **fields) for _ in range(number)]
    await store.run_inserts.insert_runs(runs)
    return [run.id for run in runs]


async def claim(
    store: Store, slots: int = 100, *, queue: str = "q", tasks: tuple[str, ...] = ("t", "u")
) -> list[Claim]:
    return await claim_runs(store, WORKER, {queue: slots}, list(tasks))


async def end(store: Store, claims: list[Claim], state: RunState = RunState.SUCCEEDED) -> None:
    await store.outcomes.finish_runs(WORKER, [Outcome(one.run_id, one.token, state) for one in claims])


async def view(store: Store, run_id: UUID) -> RunView:
    found = await store.runs.get_run(run_id)
    assert found is not None
    return found


def concurrency(key: str, limit: int, at_limit: str = "wait") -> str:
    return f'{{"concurrency": {{"key": "{key}", "limit": {limit}, "at_limit": "{at_limit}"}}}}'


def rate(key: str, limit: int, seconds: float) -> str:
    return f'{{"rate": {{"key": "{key}", "limit": {limit}, "period_seconds": {seconds}}}}}'


async def test_concurrency_of_a_key_is_limited_and_others_follow_in_order(store: Store, gatekeeper: Gatekeeper) -> None:
    ids = await insert(store, 5, options=concurrency("tenant", 2))
    other = await insert(store, 3, options=concurrency("other", 1))
    plain = await insert(store)
    assert {one.run_id for one in await claim(store)} == set(plain)
    for expected in (ids[:2], ids[2:4], ids[4:]):
        await gatekeeper.run_once()
        await gatekeeper.run_once()
        claims = await claim(store)
        assert {one.run_id for one in claims if one.run_id in ids} == set(expected)
        assert len([one for one in claims if one.run_id in other]) == 1
        await end(store, claims)


async def test_a_retry_gives_its_place_back_and_a_lost_or_released_attempt_keeps_it(
    store: Store, gatekeeper: Gatekeeper
) -> None:
    first, second = await insert(store, 2, options=concurrency("tenant", 1))
    await gatekeeper.run_once()
    (claimed,) = await claim(store)
    await store.outcomes.release_runs(WORKER, [Outcome(claimed.run_id, claimed.token, RunState.READY)])
    await gatekeeper.run_once()
    (claimed,) = await claim(store)
    assert claimed.run_id == first
    await store.outcomes.retry_runs(WORKER, [Outcome(claimed.run_id, claimed.token, RunState.SCHEDULED, "error", 0.0)])
    await gatekeeper.run_once()
    assert [one.run_id for one in await claim(store)] == [second]
    await store.due_runs.promote_due_runs(10)
    await gatekeeper.run_once()
    assert (await view(store, first)).state is RunState.HELD


async def test_at_the_limit_the_new_run_is_dropped_or_the_old_one_cancelled(
    store: Store, gatekeeper: Gatekeeper, sql: Any
) -> None:
    for at_limit in ("drop_new", "cancel_old"):
        (old,) = await insert(store, options=concurrency(at_limit, 1, at_limit))
        await gatekeeper.run_once()
        (claimed,) = await claim(store)
        (new,) = await insert(store, options=concurrency(at_limit, 1, at_limit))
        await gatekeeper.run_once()
        await store.cancellation.end_cancelled()
        if at_limit == "drop_new":
            assert await sql.fetch("select id, state, reason from foliot.history") == [(new, "cancelled", "limit")]
            assert (await view(store, old)).state is RunState.RUNNING
        else:
            await store.workers.register_worker(WORKER, "w", {}, [])
            asked = (await store.workers.beat(WORKER, [(claimed.run_id, claimed.token)])).to_end[
                claimed.run_id, claimed.token
            ]
            assert asked is not None
            assert asked.reason == "limit"
            await end(store, [claimed], RunState.CANCELLED)
            await gatekeeper.run_once()
            assert (await view(store, new)).state is RunState.READY


async def test_starts_of_a_key_in_any_period_are_limited(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock
) -> None:
    ids = await insert(store, 7, options=rate("mail", 3, 10))
    started: list[UUID] = []
    for moment, expected in ((0, 3), (5, 3), (9.9, 3), (10.1, 6), (15, 6), (20.3, 7)):
        await fake_clock.advance(moment - fake_clock.monotonic())
        await gatekeeper.run_once()
        claims = await claim(store)
        started += [one.run_id for one in claims]
        await end(store, claims)
        assert len(started) == expected, moment
    assert set(started[:3]) == set(ids[:3])
    assert set(started[3:6]) == set(ids[3:6])


async def test_a_run_with_both_limits_passes_both(store: Store, gatekeeper: Gatekeeper) -> None:
    both = '{"concurrency": {"key": "c", "limit": 2}, "rate": {"key": "r", "limit": 3, "period_seconds": 60}}'
    await insert(store, 9, options=both)
    started = 0
    for expected in (2, 3, 3):
        for _ in range(3):
            await gatekeeper.run_once()
        claims = await claim(store)
        started += len(claims)
        assert started == expected
        await end(store, claims)


async def test_delayed_and_recurring_runs_are_limited(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock
) -> None:
    await insert(store, 3, options=concurrency("tenant", 1), delay_seconds=5.0)
    await fake_clock.advance(5)
    assert len(await store.due_runs.promote_due_runs(10)) == 3
    assert await claim(store) == []
    await gatekeeper.run_once()
    assert len(await claim(store)) == 1


async def test_a_new_fairness_key_is_next_in_line(store: Store) -> None:
    await insert(store, 1000, options='{"fairness_key": "A"}')
    await end(store, await claim(store, 10))
    (late,) = await insert(store, options='{"fairness_key": "B"}')
    assert late in [one.run_id for one in await claim(store, 2)]
    more = await insert(store, 10, options='{"fairness_key": "C"}')
    taken = [one.run_id in more for one in await claim(store, 10)]
    assert 4 <= sum(taken) <= 6, "in turn, not one after the other"


async def test_a_key_without_waiting_runs_is_not_in_debt(store: Store) -> None:
    await insert(store, 50, options='{"fairness_key": "A"}')
    await end(store, await claim(store, 50))
    await insert(store, 20, options='{"fairness_key": "B"}')
    (again,) = await insert(store, options='{"fairness_key": "A"}')
    assert again in [one.run_id for one in await claim(store, 2)]


async def test_paused_runs_are_not_claimed_and_others_are(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock
) -> None:
    (first,) = await insert(store)
    (other,) = await insert(store, task="u")
    cases: list[tuple[PauseKind, str, set[UUID]]] = [
        ("queue", "q", set()),
        ("everything", "", set()),
        ("task", "t", {other}),
        ("queue", "elsewhere", {first, other}),
    ]
    for kind, name, expected in cases:
        await store.pauses.put_pause(kind, name, None, "maintenance", "me")
        claims = await claim(store)
        assert {one.run_id for one in claims} == expected
        await store.outcomes.release_runs(WORKER, [Outcome(one.run_id, one.token, RunState.READY) for one in claims])
        assert await store.pauses.delete_pause(kind, name)
    await store.pauses.put_pause("queue", "q", fake_clock.now() + timedelta(seconds=10), "short", None)
    assert await claim(store) == []
    await fake_clock.advance(10)
    await gatekeeper.run_once()
    assert await store.pauses.list_pauses() == []
    assert {one.run_id for one in await claim(store)} == {first, other}


async def test_the_limit_of_a_queue_holds_with_many_workers(store: Store) -> None:
    await insert(store, 10)
    await store.queues.put_queue("q", QueueLimits(max_running=3))
    assert await claim(store) == []
    another = new_id()
    await store.workers.register_worker(another, "another", {"q": 5}, ["t"])
    assert len(await store.claims.claim_limited_runs(WORKER, "q", 2, ["t"])) == 2
    assert len(await store.claims.claim_limited_runs(another, "q", 5, ["t"])) == 1
    assert await store.claims.claim_limited_runs(another, "q", 5, ["t"]) == []


async def test_a_circuit_opens_after_failures_in_a_row_and_one_probe_decides(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock
) -> None:
    circuits = {"t": Circuit(failures=3, seconds=600)}
    assert await store.circuit_breaker.record_failures({"t": 2}, circuits) == {"t": False}
    assert await store.circuit_breaker.record_successes(["t"], []) == ["t"]
    assert await store.circuit_breaker.record_failures({"t": 2}, circuits) == {"t": False}
    assert await store.circuit_breaker.record_failures({"t": 1}, circuits) == {"t": True}
    ids = await insert(store, 5)
    await insert(store, task="u")
    assert [one.task for one in await claim(store)] == ["u"]
    await fake_clock.advance(599)
    await gatekeeper.run_once()
    assert await claim(store) == []
    for verdict in ("fails", "succeeds"):
        await fake_clock.advance(601)
        assert await claim(store) == []
        await gatekeeper.run_once()
        await gatekeeper.run_once()
        (probe,) = await claim(store)
        assert probe.run_id in ids
        if verdict == "fails":
            await end(store, [probe], RunState.FAILED)
            assert await store.circuit_breaker.record_failures({"t": 1}, circuits) == {"t": True}
            await gatekeeper.run_once()
            assert await claim(store) == []
        else:
            await end(store, [probe])
            assert await store.circuit_breaker.record_successes(["t"], [probe.run_id]) == ["t"]
    assert len(await claim(store)) == 3


async def test_only_the_success_of_the_probe_closes_an_open_circuit(store: Store) -> None:
    assert await store.circuit_breaker.record_failures({"t": 5}, {"t": Circuit(failures=5)}) == {"t": True}
    assert await store.circuit_breaker.record_successes(["t"], [new_id()]) == []


async def test_a_failed_probe_waits_for_its_retry_like_any_run(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock
) -> None:
    circuits = {"t": Circuit(failures=1, seconds=600)}
    await store.circuit_breaker.record_failures({"t": 1}, circuits)
    await insert(store)
    assert await claim(store) == []
    await fake_clock.advance(601)
    await store.workers.register_worker(new_id(), "another", {"q": 1}, ["t"])
    await gatekeeper.run_once()
    (probe,) = await claim(store)
    await store.outcomes.retry_runs(
        WORKER, [Outcome(probe.run_id, probe.token, RunState.SCHEDULED, "error", delay_seconds=1)]
    )
    assert await store.circuit_breaker.record_failures({"t": 1}, circuits) == {"t": True}
    await fake_clock.advance(2)
    await store.due_runs.promote_due_runs(10)
    await gatekeeper.run_once()
    assert await claim(store) == []


async def test_a_probe_of_a_paused_task_waits_for_the_pause_to_end(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock
) -> None:
    await store.circuit_breaker.record_failures({"t": 1}, {"t": Circuit(failures=1, seconds=600)})
    await insert(store)
    await store.pauses.put_pause("task", "t", None, None, None)
    await fake_clock.advance(601)
    await store.workers.register_worker(new_id(), "another", {"q": 1}, ["t"])
    await gatekeeper.run_once()
    assert await claim(store) == []
    await store.pauses.delete_pause("task", "t")
    await gatekeeper.run_once()
    assert len(await claim(store)) == 1


@pytest.mark.parametrize("why", ["no worker", "paused"])
async def test_a_probe_comes_from_a_queue_with_a_worker(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, why: str
) -> None:
    await store.circuit_breaker.record_failures({"t": 1}, {"t": Circuit(failures=1, seconds=600)})
    await insert(store, queue="elsewhere")
    (served,) = await insert(store)
    if why == "paused":
        await store.pauses.put_pause("queue", "elsewhere", None, None, None)
    await fake_clock.advance(601)
    await store.workers.register_worker(
        new_id(), "another", {"q": 1} | ({"elsewhere": 1} if why == "paused" else {}), ["t"]
    )
    await gatekeeper.run_once()
    await gatekeeper.run_once()
    assert [one.run_id for one in await claim(store)] == [served]
