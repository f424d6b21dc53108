"""Puts runs into the state that a test needs, with the store's own statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from foliot.model.ids import new_id
from foliot.model.outcome import Outcome, error_of
from foliot.model.run import Claim, NewRun
from foliot.model.states import RunState
from foliot.store.store import Store
from foliot.store.stuck_runs import Look

WORKER = new_id()


async def insert(store: Store, task: str = "send_invoice", queue: str = "mail", **fields: Any) -> UUID:
    run = NewRun(id=new_id(), task=task, queue=queue, **fields)
    await store.run_inserts.insert_runs([run])
    return run.id


async def claim_runs(store: Store, worker_id: UUID, slots: Mapping[str, int], tasks: Sequence[str]) -> list[Claim]:
    """Claims as a worker with a fresh lease: without a lease a claim returns nothing."""
    if not (await store.workers.beat(worker_id, [])).is_renewed:
        await store.workers.register_worker(worker_id, "claims by hand", slots, tasks)
    return await store.claims.claim_runs(worker_id, slots, tasks)


async def claim(
    store: Store, *, queue: str = "mail", count: int = 1, worker: UUID = WORKER, task: str = "send_invoice"
) -> list[Claim]:
    return await claim_runs(store, worker, {queue: count}, [task])


async def find_stuck(store: Store) -> list[tuple[str, UUID]]:
    """Runs a whole round in small steps, so that it takes several of them."""
    look: Look | None = Look(runs=50, parents=5)
    stuck = []
    while look is not None:
        found, look = await store.stuck_runs.find_stuck(look)
        stuck += found
    return stuck


async def finish(
    store: Store, state: RunState = RunState.SUCCEEDED, *, error: str = "", output: bytes | None = None, **fields: Any
) -> UUID:
    """A run that has ended; `error` is the message of one that failed."""
    run_id = await insert(store, **fields)
    (claimed,) = await claim(store, queue=fields.get("queue", "mail"), task=fields.get("task", "send_invoice"))
    assert claimed.run_id == run_id
    encoded = (
        msgspec.json.encode(error_of("ValueError", error, "Traceback")).decode() if state is RunState.FAILED else None
    )
    reason = "error" if state is RunState.FAILED else None
    outcome = Outcome(run_id, claimed.token, state, reason, error=encoded, output=output)
    assert await store.outcomes.finish_runs(WORKER, [outcome]) == 1
    return run_id
