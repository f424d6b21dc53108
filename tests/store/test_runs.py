from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.clock import Clock
from foliot.model.ids import new_id, new_id_texts
from foliot.model.outcome import Outcome
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.store.arrays import json_array
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.plans import rows_read
from tests.support.runs import claim_runs

WORKER = new_id()
QUEUES = {"default": 1000}


def run(**fields: Any) -> NewRun:
    given: dict[str, Any] = {"id": new_id(), "task": "t", "queue": "default"} | fields
    return NewRun(**given)


async def claim(store: Store, slots: int = 1000, *, queue: str = "default", worker_id: Any = WORKER) -> list[Any]:
    return await claim_runs(store, worker_id, {queue: slots}, ["t"])


async def test_a_run_goes_from_insert_to_history(store: Store) -> None:
    given = run(name="hello", payload='{"a": 1}', options='{"retries": 2}', priority=5)
    stored = await store.run_inserts.insert_runs([given])
    assert stored[given.id].state is RunState.READY
    (claimed,) = await claim(store)
    assert (claimed.run_id, claimed.token, claimed.attempt, claimed.queue) == (given.id, 1, 1, "default")
    assert (
        await store.outcomes.finish_runs(
            WORKER, [Outcome(given.id, 1, RunState.SUCCEEDED, result='{"b": 2}', output=b"\0\xff")]
        )
        == 1
    )
    view = await store.runs.get_run(given.id)
    assert view is not None
    assert (view.state, view.name, view.payload, view.options) == (
        RunState.SUCCEEDED,
        "hello",
        {"a": 1},
        {"retries": 2},
    )
    assert (view.result, view.output, view.attempt, view.worker_id) == ({"b": 2}, b"\0\xff", 1, WORKER)
    assert view.started_at is not None
    assert view.finished_at is not None
    assert view.created_at <= view.due_at <= view.started_at <= view.finished_at


async def test_inserting_the_same_ids_again_changes_nothing(store: Store, sql: Any) -> None:
    given = [run() for _ in range(3)]
    first = await store.run_inserts.insert_runs(given)
    assert await store.run_inserts.insert_runs(given) == first
    assert await sql.fetchval("select count(*) from foliot.runs") == 3


async def test_equal_runs_are_stored_in_order(store: Store) -> None:
    for given in (run(), run(delay_seconds=60.0, name="n", priority=3, options='{"retries": 2}')):
        ids = new_id_texts(100)
        texts = ['{"n": 7.10, "text": "\\u20ac"}', None, *(f'{{"n": {number}}}' for number in range(98))]
        one = await store.run_inserts.insert_alike(given, ids, json_array(texts))
        views = [await store.runs.get_run(UUID(run_id)) for run_id in ids]
        assert [view.payload for view in views if view][:3] == [{"n": 7.1, "text": "€"}, {}, {"n": 0}]
        assert {(view.state, view.name, view.priority) for view in views if view} == {
            (one.state, given.name, given.priority)
        }
    assert [claimed.payload for claimed in await claim(store)] == ['{"n": 7.10, "text": "€"}', *texts[1:]]


async def test_a_batch_larger_than_a_json_array_is_stored(
    store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.store.run_inserts.PAYLOADS_MAX", 20)
    ids = new_id_texts(3)
    stored = await store.run_inserts.insert_alike(run(), ids, '[{"a": 1},null,{"a": 2}]')
    await store.run_inserts.insert_runs([run(payload='{"a": 3}') for _ in range(4)])
    assert stored.state is RunState.READY
    found = await sql.fetch("select payload from foliot.runs order by rank")
    assert [row["payload"] for row in found] == ['{"a": 1}', None, '{"a": 2}', *['{"a": 3}'] * 4]


async def test_a_batch_keeps_its_order(store: Store) -> None:
    given = [run() for _ in range(20)]
    await store.run_inserts.insert_runs(given)
    taken = [(await claim(store, 1))[0].run_id for _ in given]
    assert taken == [r.id for r in given]


async def test_higher_priority_is_claimed_first_until_aging_outweighs_it(store: Store, sql: Any) -> None:
    low, high = run(priority=0), run(priority=1)
    await store.run_inserts.insert_runs([low])
    await store.run_inserts.insert_runs([high])
    assert (await claim(store, 1))[0].run_id == high.id
    await store.outcomes.release_runs(WORKER, [Outcome(high.id, 1, RunState.READY)])
    # Five minutes of waiting raise the priority by one level; a little more puts the older run ahead.
    await sql.execute("update foliot.runs set rank = rank - 301 * 1000000 where id = $1", low.id)
    assert (await claim(store, 1))[0].run_id == low.id


async def test_a_due_instant_in_the_past_counts_as_now(store: Store) -> None:
    old, fresh = run(due_at=datetime(1970, 1, 1, tzinfo=UTC)), run()
    await store.run_inserts.insert_runs([fresh])
    stored = await store.run_inserts.insert_runs([old])
    assert stored[old.id].due_at == stored[old.id].created_at
    assert (await claim(store, 1))[0].run_id == fresh.id


async def test_a_claim_takes_only_known_tasks_up_to_the_slots_of_each_queue(store: Store) -> None:
    await store.run_inserts.insert_runs(
        [run(queue="a") for _ in range(5)] + [run(queue="b") for _ in range(5)] + [run(queue="a", task="alien")]
    )
    claimed = await claim_runs(store, WORKER, {"a": 2, "b": 3, "c": 9}, ["t"])
    assert sorted(c.queue for c in claimed) == ["a", "a", "b", "b", "b"]
    rest = await claim_runs(store, WORKER, {"a": 100}, ["t"])
    assert {c.task for c in rest} == {"t"}
    assert len(rest) == 3


async def test_concurrent_claims_never_share_a_run(store: Store) -> None:
    await store.run_inserts.insert_runs([run() for _ in range(500)])
    claims = await asyncio.gather(*(claim(store, 40, worker_id=new_id()) for _ in range(20)))
    taken = [c.run_id for batch in claims for c in batch]
    assert len(taken) == len(set(taken)) == 500


async def test_a_lost_claim_is_recovered_by_its_owner(store: Store) -> None:
    await store.run_inserts.insert_runs([run() for _ in range(3)])
    known, lost = (await claim(store, 1))[0], await claim(store, 2)
    recovered = await store.claims.recover_claims(WORKER, [(known.run_id, known.token)])
    assert sorted(recovered, key=lambda c: c.run_id) == sorted(lost, key=lambda c: c.run_id)


async def test_a_repeated_finish_writes_once_and_differs_from_a_stale_write(store: Store, sql: Any) -> None:
    given = [run(), run()]
    await store.run_inserts.insert_runs(given)
    outcomes = [Outcome(c.run_id, c.token, RunState.SUCCEEDED) for c in await claim(store)]
    assert await store.outcomes.finish_runs(WORKER, outcomes) == 2
    assert await store.outcomes.finish_runs(WORKER, outcomes) == 0
    assert await store.outcomes.count_written(WORKER, outcomes) == 2
    stale = [Outcome(outcomes[0].run_id, 99, RunState.SUCCEEDED)]
    assert await store.outcomes.count_written(WORKER, stale) == 0
    assert await sql.fetchval("select count(*) from foliot.history") == 2


async def test_a_retry_waits_and_keeps_its_attempt(database_url: str, store: Store, sql: Any) -> None:
    given = run()
    await store.run_inserts.insert_runs([given])
    await claim(store)
    error = '{"kind": "ValueError", "message": "no"}'
    outcome = Outcome(given.id, 1, RunState.SCHEDULED, "error", 60.0, error=error, output=b"text")
    assert await store.outcomes.retry_runs(WORKER, [outcome]) == 1
    view = await store.runs.get_run(given.id)
    assert view is not None
    assert (view.state, view.attempt, view.error["message"], view.output) == (RunState.SCHEDULED, 1, "no", b"text")
    assert timedelta(seconds=55) < view.due_at - datetime.now(UTC) <= timedelta(seconds=61)
    assert await store.due_runs.promote_due_runs(10) == []
    await sql.execute("update foliot.runs set due_at = now()")
    assert await store.due_runs.promote_due_runs(10) == ["default"]
    (again,) = await claim(store)
    assert (again.token, again.attempt) == (2, 2)


async def test_a_release_uses_up_the_token_but_no_attempt(store: Store) -> None:
    await store.run_inserts.insert_runs([run()])
    (first,) = await claim(store)
    assert await store.outcomes.release_runs(WORKER, [Outcome(first.run_id, first.token, RunState.READY)]) == 1
    (second,) = await claim(store)
    assert (second.token, second.attempt) == (2, 1)


@pytest.mark.parametrize("outcome", ["error", "snoozed"])
async def test_a_released_retry_still_counts_as_started(store: Store, sql: Any, outcome: str) -> None:
    await store.run_inserts.insert_runs([run(expires_at=datetime.now(UTC) + timedelta(minutes=1))])
    (first,) = await claim(store)
    await store.outcomes.retry_runs(WORKER, [Outcome(first.run_id, first.token, RunState.SCHEDULED, outcome, 0.0)])
    assert await store.due_runs.promote_due_runs(10) == ["default"]
    (second,) = await claim(store)
    await store.outcomes.release_runs(WORKER, [Outcome(second.run_id, second.token, RunState.READY)])
    await sql.execute("update foliot.runs set expires_at = now()")
    assert await store.expiry.expire_runs(10) == 0
    assert len(await claim(store)) == 1


async def test_lost_runs_come_back_until_their_limit(store: Store, sql: Any) -> None:
    given = run()
    await store.run_inserts.insert_runs([given])
    for number in (1, 2, 3):
        (claimed,) = await claim(store)
        assert (claimed.attempt, claimed.lost) == (number, number - 1)
        await store.workers.remove_worker(WORKER)
        lost = await store.lost_runs.lose_runs(100, 3)
        assert (lost.requeued, lost.buried) == ((1, 0) if number < 3 else (0, 1))
    view = await store.runs.get_run(given.id)
    assert view is not None
    assert (view.state, view.reason, view.lost) == (RunState.FAILED, "lost", 3)
    assert [tuple(row) for row in await sql.fetch("select attempt, outcome from foliot.attempts order by attempt")] == [
        (1, "lost"),
        (2, "lost"),
    ]


async def test_runs_of_a_live_worker_are_never_lost(store: Store) -> None:
    alive, dead = new_id(), new_id()
    await store.run_inserts.insert_runs([run() for _ in range(60)])
    await claim(store, 50, worker_id=alive)
    await claim(store, 10, worker_id=dead)
    await store.workers.remove_worker(dead)
    lost = await asyncio.gather(*(store.lost_runs.lose_runs(3, 3) for _ in range(8)))
    assert sum(found.requeued for found in lost) == 10
    assert len(await store.claims.recover_claims(alive, [])) == 50


class TestFakeClock:
    @pytest.fixture
    def clock(self, fake_clock: FakeClock) -> Clock:
        return fake_clock

    @pytest.mark.parametrize(
        "fields",
        [
            {},
            {"name": "n", "priority": -3, "payload": '{"a": 1}', "expires_at": datetime(2026, 3, 2, tzinfo=UTC)},
            {"delay_seconds": 7.5, "priority": 2},
            {"due_at": datetime(2026, 3, 1, 11, tzinfo=UTC)},
            {"due_at": datetime(2026, 3, 1, 13, tzinfo=UTC), "options": '{"concurrency": {"key": "k", "max": 1}}'},
            {"options": '{"concurrency": {"key": "k", "max": 1}}'},
            {"options": '{"rate": {"key": "k", "limit": 1, "per_seconds": 1}}', "priority": 9},
            {"options": '{"signal": {"timeout_seconds": 60}}'},
            {"options": '{"signal": {}}'},
            {"options": '{"retries": 1}'},
        ],
        ids=lambda fields: " ".join(fields) or "plain",
    )
    async def test_equal_runs_are_stored_as_if_one_by_one(self, store: Store, sql: Any, fields: dict[str, Any]) -> None:
        alike = [run(**fields) for _ in range(3)]
        stored = await store.run_inserts.insert_runs(alike)
        columns = "state, held_by, due_at, created_at, rank, priority, queue, task, name, payload, options, expires_at"
        at_once = [tuple(row) for row in await sql.fetch(f"select {columns} from foliot.runs order by id")]
        await sql.execute("truncate foliot.runs")
        # Inside a transaction, the careful variant is used.
        carefully = await store.database.in_transaction(
            "insert", lambda within: store.run_inserts.insert_runs(alike, within=within)
        )
        assert [tuple(row) for row in await sql.fetch(f"select {columns} from foliot.runs order by id")] == at_once
        assert stored == carefully

    async def test_a_delayed_run_is_ready_exactly_when_it_is_due(self, store: Store, fake_clock: FakeClock) -> None:
        given = run(delay_seconds=10.0)
        stored = await store.run_inserts.insert_runs([given])
        assert (stored[given.id].state, stored[given.id].due_at) == (
            RunState.SCHEDULED,
            fake_clock.now() + timedelta(seconds=10),
        )
        assert await store.due_runs.seconds_until_due() == 10.0
        await fake_clock.advance(9.999)
        assert await store.due_runs.promote_due_runs(10) == []
        await fake_clock.advance(0.001)
        assert await store.due_runs.promote_due_runs(10) == ["default"]
        assert await store.due_runs.seconds_until_due() is None

    async def test_a_worker_dies_when_its_lease_ends_and_not_before(self, store: Store, fake_clock: FakeClock) -> None:
        worker = new_id()
        await store.workers.register_worker(worker, "w", QUEUES, ["t"])
        await store.run_inserts.insert_runs([run()])
        await claim(store, worker_id=worker)
        await fake_clock.advance(14.9)
        assert (await store.lost_runs.lose_runs(10, 3)).requeued == 0
        assert (await store.workers.beat(worker, [])).is_renewed
        await fake_clock.advance(14.9)
        assert (await store.lost_runs.lose_runs(10, 3)).requeued == 0
        await fake_clock.advance(0.2)
        assert await store.workers.remove_dead_workers() == 1
        assert (await store.lost_runs.lose_runs(10, 3)).requeued == 1
        assert not (await store.workers.beat(worker, [])).is_renewed

    async def test_a_worker_claims_nothing_after_its_lease(self, store: Store, fake_clock: FakeClock) -> None:
        """Its claims would be released unstarted, and at-most-once runs would fail."""
        worker = new_id()
        await store.run_inserts.insert_runs([run() for _ in range(3)])
        assert await store.claims.claim_runs(worker, QUEUES, ["t"]) == []
        await store.workers.register_worker(worker, "w", QUEUES, ["t"])
        assert len(await store.claims.claim_runs(worker, {"default": 1}, ["t"])) == 1
        await fake_clock.advance(15.1)
        assert await store.claims.claim_runs(worker, QUEUES, ["t"]) == []
        assert await store.claims.claim_limited_runs(worker, "default", 10, ["t"]) == []
        assert (await store.workers.beat(worker, [])).is_renewed
        assert len(await store.claims.claim_runs(worker, {"default": 1}, ["t"])) == 1
        await fake_clock.advance(15.1)
        await store.workers.remove_dead_workers()
        assert await store.claims.claim_runs(worker, QUEUES, ["t"]) == []


async def test_a_claim_reads_only_the_runs_that_it_takes(store: Store, sql: Any) -> None:
    await sql.execute(
        """
        insert into foliot.runs (id, created_at, due_at, rank, state, queue, task)
        select gen_random_uuid(), now(), now(), n, 'ready', 'q', 't' from generate_series(1, 20000) n
        """
    )
    await sql.execute("analyze foliot.runs")
    await store.workers.register_worker(WORKER, "w", QUEUES, ["t"])
    assert await rows_read(sql, "claims", "claim_runs", ["q"], [100], ["t"], WORKER, None, False) <= 300
