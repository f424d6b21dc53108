"""A claim takes the runs that are first, each once, and only under a live lease."""

from __future__ import annotations

import asyncio
from typing import Any

from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.new_runs import QUEUES, WORKER, claim, run
from tests.support.plans import rows_read
from tests.support.runs import claim_runs


async def test_higher_priority_is_claimed_first_until_aging_outweighs_it(store: Store, sql: Any) -> None:
    low, high = run(priority=0), run(priority=1)
    await store.run_inserts.insert_runs([low])
    await store.run_inserts.insert_runs([high])
    assert (await claim(store, 1))[0].run_id == high.id
    await store.outcomes.release_runs(WORKER, [Outcome(high.id, 1, RunState.READY)])
    # Five minutes of waiting raise the priority by one level; a little more puts the older run ahead.
    await sql.execute("update foliot.runs set rank = rank - 301 * 1000000 where id = $1", low.id)
    assert (await claim(store, 1))[0].run_id == low.id


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


async def test_a_claim_reads_only_the_runs_that_it_takes(store: Store, sql: Any) -> None:
    await sql.execute(
        """
        insert into foliot.runs (id, created_at, due_at, rank, state, queue, task)
        select gen_random_uuid(), now(), now(), n, 'ready', 'q', 't' from generate_series(1, 20000) n
        """
    )
    await sql.execute("analyze foliot.runs")
    await store.workers.register_worker(WORKER, "w", QUEUES, ["t"])
    assert await rows_read(sql, "claims", "claim_runs", ["q"], [100], ["t"], WORKER, None, False, []) <= 300
