"""`GET /v1/approvals` lists runs that wait for a decision."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from foliot.api.routes import approvals
from foliot.store.store import Store


@pytest.fixture(autouse=True)
async def tasks(store: Store) -> None:
    await store.workers.announce_tasks({"shell": "default", "wait": "default", "team/shell": "team/default"})


async def waiting(client: httpx.AsyncClient, **fields: Any) -> str:
    answer = await client.post("/v1/jobs", json={"signal": {}, **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_waiting_runs_are_listed_with_their_signal_and_since_when(client: httpx.AsyncClient) -> None:
    workflow = await client.post(
        "/v1/workflows",
        json={
            "name": "payout",
            "steps": [
                {"key": "approve", "signal": {"timeout_seconds": 3600}, "metadata": {"amount": 12}, "tags": ["money"]}
            ],
        },
    )
    alone = await waiting(client, name="refund", command="echo refunded")
    large = await waiting(client, command="echo large", name="x" * 50, metadata={"note": "n" * 10})
    found = (await client.get("/v1/approvals")).json()
    first, second, third = found["items"]
    assert found["next"] is None
    assert (first["id"], first["step"]) == (workflow.json()["steps"]["approve"], "approve")
    assert (first["workflow"], first["workflow_id"]) == ("payout", workflow.json()["id"])
    assert (first["metadata"], first["tags"]) == ({"amount": 12}, ["money"])
    assert first["until"] > first["since"]
    assert (second["id"], second["name"], second["until"]) == (alone, "refund", None)
    assert second["payload"] == {"command": "echo refunded"}
    assert third["id"] == large
    assert (await client.post(f"/v1/runs/{alone}/signal")).status_code == 200
    assert alone not in [item["id"] for item in (await client.get("/v1/approvals")).json()["items"]]


async def test_large_payloads_are_left_out(client: httpx.AsyncClient) -> None:
    await waiting(client, command="echo " + "x" * 30_000)
    (item,) = (await client.get("/v1/approvals")).json()["items"]
    assert (item["payload"], item["payload_bytes"] > 30_000) == (None, True)


async def test_pages_go_past_other_namespaces(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approvals, "SCAN_MAX", 3)
    elsewhere = {"Foliot-Namespace": "team"}
    for _ in range(5):
        answer = await client.post("/v1/jobs", json={"signal": {}, "command": "echo"}, headers=elsewhere)
        assert answer.status_code == 201, answer.text
    mine = [await waiting(client, command="echo") for _ in range(3)]
    found: list[str] = []
    after = ""
    while True:
        page = (await client.get("/v1/approvals", params={"limit": 2, "after": after})).json()
        found += [item["id"] for item in page["items"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert found == mine
    for query in ({"after": "x"}, {"limit": 0}):
        assert (await client.get("/v1/approvals", params=query)).status_code == 422
