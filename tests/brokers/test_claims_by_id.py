"""A claim by id obeys every rule of a claim by queue."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.store.queue_limits import QueueLimits
from foliot.store.store import Store
from tests.support.queries import query_named

SLOTS = {"default": 10, "mail": 2}
TASKS = ["send", "count"]


@pytest.fixture
async def worker_id(store: Store) -> UUID:
    worker_id = new_id()
    await store.workers.register_worker(worker_id, "worker", SLOTS, TASKS)
    return worker_id


async def insert(store: Store, *, task: str = "send", queue: str = "default", **fields: Any) -> UUID:
    run = NewRun(id=new_id(), task=task, queue=queue, **fields)
    await store.run_inserts.insert_runs([run])
    return run.id


async def both_ways(store: Store, worker_id: UUID, *run_ids: UUID) -> set[UUID]:
    """The runs that are claimed by id. A broker announces all of them."""
    startable = await store.claims.list_startable(list(SLOTS), 100)
    told = {run.id for runs in startable.values() for run in runs}
    claimed = {claim.run_id for claim in await store.claims.claim_runs_by_id(worker_id, run_ids, SLOTS, TASKS)}
    assert claimed <= told
    return claimed


async def test_only_the_given_runs_are_claimed_and_only_once(store: Store, worker_id: UUID) -> None:
    first, second = await insert(store), await insert(store)
    (claim,) = await store.claims.claim_runs_by_id(worker_id, [first, new_id()], SLOTS, TASKS)
    assert (claim.run_id, claim.token, claim.attempt, claim.queue, claim.task) == (first, 1, 1, "default", "send")
    assert await store.claims.claim_runs_by_id(worker_id, [first], SLOTS, TASKS) == []
    assert await both_ways(store, worker_id, first, second) == {second}


async def test_no_more_runs_than_slots_and_the_most_urgent_first(store: Store, worker_id: UUID) -> None:
    runs = [await insert(store, queue="mail", priority=priority) for priority in (0, 50, 5, 100)]
    assert await both_ways(store, worker_id, *runs) == {runs[1], runs[3]}


@pytest.mark.parametrize(("kind", "name"), [("queue", "default"), ("task", "send"), ("everything", "")])
async def test_nothing_paused_is_claimed(store: Store, worker_id: UUID, kind: Any, name: str) -> None:
    run = await insert(store)
    await store.pauses.put_pause(kind, name, None, None, None)
    assert await both_ways(store, worker_id, run) == set()
    assert await store.claims.list_startable(["default"], 10) == {"default": []}
    await store.pauses.delete_pause(kind, name)
    assert await both_ways(store, worker_id, run) == {run}


@pytest.mark.parametrize(
    "change",
    [
        "update foliot.runs set cancel = '{}'",
        "update foliot.runs set expires_at = now() - interval '1 second'",
        "update foliot.runs set task = 'unknown'",
        "update foliot.runs set queue = 'elsewhere'",
        "update foliot.runs set state = 'scheduled'",
        "update foliot.runs set state = 'waiting'",
        "update foliot.runs set state = 'held', held_by = 'limit'",
        "update foliot.workers set draining_at = now()",
        "update foliot.workers set expires_at = now()",
        "delete from foliot.workers",
        "insert into foliot.circuits (task, failures, open_until, updated_at) values ('send', 9, 'infinity', now())",
    ],
)
async def test_a_run_that_may_not_start_is_not_claimed(store: Store, sql: Any, worker_id: UUID, change: str) -> None:
    run = await insert(store)
    await sql.execute(change)
    assert await both_ways(store, worker_id, run) == set()


async def test_the_probe_of_an_open_circuit_is_claimed(store: Store, sql: Any, worker_id: UUID) -> None:
    probe, other = await insert(store), await insert(store)
    await sql.execute(
        "insert into foliot.circuits (task, failures, open_until, updated_at) values ('send', 9, 'infinity', now())"
    )
    await sql.execute("update foliot.runs set is_probe = true where id = $1", probe)
    assert await both_ways(store, worker_id, probe, other) == {probe}


async def test_a_queue_with_a_limit_is_left_to_claims_that_count(store: Store, worker_id: UUID) -> None:
    run = await insert(store)
    await store.queues.put_queue("default", QueueLimits(max_running=5))
    assert await both_ways(store, worker_id, run) == set()


async def test_a_run_of_a_disabled_task_is_marked(store: Store, worker_id: UUID) -> None:
    run = await insert(store)
    await store.disabled_tasks.put_disabled_task("default", "send", "somebody", None, is_imposed=False)
    (claim,) = await store.claims.claim_runs_by_id(worker_id, [run], SLOTS, TASKS)
    assert claim.is_disabled


async def test_the_statements_use_their_indexes(store: Store, sql: Any) -> None:
    await sql.execute("analyze foliot.runs")
    await sql.execute(
        """
        insert into foliot.runs (id, created_at, due_at, rank, state, queue, task)
        select gen_random_uuid(), now(), now(), n, (array['ready', 'scheduled'])[n % 2 + 1], 'q' || n % 3, 't'
        from generate_series(1, 20000) n
        """
    )
    await sql.execute("set plan_cache_mode = force_generic_plan; set enable_seqscan = off")
    ids = [row[0] for row in await sql.fetch("select id from foliot.runs limit 500")]
    by_id = await sql.prepare(query_named("claim_runs_by_id").sql)
    assert "runs_pkey" in (plan := str(await by_id.explain(ids, ["q1"], [100], ["t"], None, None, False)))
    assert "runs_ready" not in plan
    listing = await sql.prepare(query_named("list_startable").sql)
    assert "runs_ready" in (plan := str(await listing.explain(["q1"], 100, None)))
    assert "Sort" not in plan


async def test_a_worker_gets_no_run_that_it_declined(store: Store, worker_id: UUID) -> None:
    declined, other = await insert(store), await insert(store)
    claims = await store.claims.claim_runs_by_id(worker_id, [declined, other], SLOTS, TASKS, [declined])
    assert [claim.run_id for claim in claims] == [other]
    assert await store.claims.claim_runs(worker_id, SLOTS, TASKS, [declined]) == []
    assert [claim.run_id for claim in await store.claims.claim_runs(worker_id, SLOTS, TASKS)] == [declined]
