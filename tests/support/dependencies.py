"""Jobs that depend on jobs: created over HTTP, and ended by the test."""

from __future__ import annotations

from typing import Any

import httpx

from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.runs import claim_runs

WORKER = new_id()


async def create(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/jobs", json={"task": "simulate", **fields})
    assert answer.status_code == 201, answer.text
    job: dict[str, Any] = answer.json()
    return job


async def refused(client: httpx.AsyncClient, **fields: Any) -> str:
    answer = await client.post("/v1/jobs", json={"task": "simulate", **fields})
    assert answer.status_code == 422, answer.text
    return str(answer.json()["detail"])


async def end(store: Store, state: RunState = RunState.SUCCEEDED, count: int = 100) -> list[str]:
    """Claims all ready runs in order, ends them, and returns their names."""
    claims = await claim_runs(store, WORKER, {"default": count}, ["simulate"])
    names = [run.name or "" for claim in claims if (run := await store.runs.get_run(claim.run_id))]
    reason = "error" if state is RunState.FAILED else None
    await store.outcomes.finish_runs(WORKER, [Outcome(claim.run_id, claim.token, state, reason) for claim in claims])
    return sorted(names)
