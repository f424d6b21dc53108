"""Cancelling over HTTP, without a worker: waiting runs end at once, running runs are marked, ended runs stay as they
are."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx
import pytest

from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.runs import claim_runs

WORKER = new_id()


async def submit(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/jobs", json={"task": "send_invoice", **fields})
    assert answer.status_code == 201
    job: dict[str, Any] = answer.json()
    return job


@pytest.mark.parametrize("fields", [{}, {"delay_seconds": 3600}])
@pytest.mark.parametrize("family", ["jobs", "runs"])
async def test_waiting_runs_are_cancelled_at_once(
    client: httpx.AsyncClient, family: str, fields: dict[str, Any]
) -> None:
    job = await submit(client, **fields)
    answer = await client.post(f"/v1/{family}/{job['id']}/cancel", json={"reason": "a typo"})
    assert (answer.status_code, answer.json()["status"], answer.json()["reason"]) == (200, "cancelled", "cancelled")
    assert answer.json()["error"] == {"kind": "Cancelled", "message": "a typo"}
    # A second cancel, without a body, changes nothing.
    again = await client.post(f"/v1/{family}/{job['id']}/cancel")
    assert (again.status_code, again.json()) == (200, answer.json())


async def test_running_runs_are_stopped_by_their_worker_or_ended_by_force(
    client: httpx.AsyncClient, store: Store
) -> None:
    job = await submit(client)
    (claim,) = await claim_runs(store, WORKER, {"mail": 1}, ["send_invoice"])
    asked = await client.post(f"/v1/runs/{job['id']}/cancel")
    assert (asked.json()["status"], asked.json()["attempt"]) == ("running", 1)
    cancel = (await store.workers.beat(WORKER, [(claim.run_id, claim.token)])).to_end[claim.run_id, claim.token]
    assert cancel is not None
    assert (cancel.reason, cancel.message) == ("cancelled", "cancelled by request")
    forced = await client.post(f"/v1/runs/{job['id']}/cancel", json={"force": True})
    assert (forced.json()["status"], forced.json()["worker_id"]) == ("cancelled", str(WORKER))


@pytest.mark.parametrize("way", ["lost", "released", "retried"])
async def test_a_run_marked_as_cancelled_is_not_started_again_when_its_worker_releases_it(
    client: httpx.AsyncClient, store: Store, way: str
) -> None:
    job = await submit(client)
    (claim,) = await claim_runs(store, WORKER, {"mail": 1}, ["send_invoice"])
    await client.post(f"/v1/runs/{job['id']}/cancel")
    if way == "lost":
        await store.workers.remove_worker(WORKER)
        assert (await store.lost_runs.lose_runs(10, 3)).requeued == 1
    elif way == "released":
        assert await store.outcomes.release_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.READY)]) == 1
    else:
        assert (
            await store.outcomes.retry_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SCHEDULED, "error")])
            == 1
        )
        assert await store.due_runs.promote_due_runs(10) == ["mail"]
    assert await claim_runs(store, WORKER, {"mail": 1}, ["send_invoice"]) == []
    assert await store.cancellation.end_cancelled() == 1
    assert (await client.get(f"/v1/runs/{job['id']}")).json()["status"] == "cancelled"


@pytest.mark.parametrize("reference", [str(UUID(int=1)), "nothing", "%00"])
async def test_an_unknown_run_is_not_found(client: httpx.AsyncClient, reference: str) -> None:
    for answer in (await client.post(f"/v1/runs/{reference}/cancel"), await client.get(f"/v1/runs/{reference}")):
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "field"), [({"reason": 1}, "reason"), ({"force": "yes"}, "force"), ({"why": "x"}, "why")]
)
async def test_an_invalid_cancel_is_refused(client: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    job = await submit(client)
    answer = await client.post(f"/v1/runs/{job['id']}/cancel", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert (await client.get(f"/v1/runs/{job['id']}")).json()["status"] == "pending"
