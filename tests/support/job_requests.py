"""Jobs posted over HTTP, and their runs started and finished in the store, for tests."""

from __future__ import annotations

from typing import Any

import httpx

from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.runs import claim_runs

WORKER = new_id()
TASKS = ["send_invoice", "simulate"]
ONCE: dict[str, Any] = {"task": "simulate", "payload": {"n": 1}}


async def post_job(client: httpx.AsyncClient, key: str | None = None, **fields: Any) -> httpx.Response:
    return await client.post("/v1/jobs", json=fields, headers={"Idempotency-Key": key} if key is not None else {})


async def count_runs(sql: Any) -> int:
    found: int = await sql.fetchval("select count(*) from foliot.runs")
    return found


async def start_run(store: Store, queue: str = "default") -> Any:
    (claim,) = await claim_runs(store, WORKER, {queue: 1}, TASKS)
    return claim


async def finish_run(store: Store, claim: Any) -> None:
    assert await store.outcomes.finish_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED)]) == 1
