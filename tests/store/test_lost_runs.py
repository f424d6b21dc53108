"""Runs of dead workers come back, and those of live workers stay."""

from __future__ import annotations

import asyncio
from typing import Any

from foliot.model.ids import new_id
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.new_runs import WORKER, claim, run


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
