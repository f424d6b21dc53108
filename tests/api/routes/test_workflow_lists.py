"""Lists of workflows over HTTP: running, ended and future ones, and the runs that they consist of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

import foliot
from foliot.api import run_filters
from foliot.api.routes import workflows
from foliot.store.store import Store
from tests.support.waiting import until
from tests.support.workers import worker_node


@pytest.fixture
async def worker(store: Store) -> AsyncIterator[None]:
    app = foliot.App()

    @app.task(retries=0)
    async def double(item: int) -> int:
        return item * 2

    @app.task(retries=0)
    async def bad() -> None:
        raise ValueError("no")

    async with worker_node(store, app):
        yield


async def create(client: httpx.AsyncClient, *steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/workflows", json={"steps": steps, **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def got(client: httpx.AsyncClient, path: str, **query: Any) -> dict[str, Any]:
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def ended(client: httpx.AsyncClient, workflow_id: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found = await got(client, f"/v1/workflows/{workflow_id}")
        return found if found["status"] in ("completed", "failed", "cancelled") else None

    found = await until(look)
    assert found is not None
    return found


async def listed(client: httpx.AsyncClient, path: str = "/v1/workflows", **query: Any) -> list[dict[str, Any]]:
    """The items of all pages."""
    found: list[dict[str, Any]] = []
    while True:
        page = await got(client, path, **query)
        found += page["items"]
        if page["next"] is None:
            return found
        query["after"] = page["next"]


WAITS = {"key": "ask", "signal": {}}


async def test_workflows_are_listed_latest_first_by_state_and_name_without_those_that_are_steps(
    client: httpx.AsyncClient, worker: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = await create(client, {"key": "a", "task": "double", "payload": {"item": 1}}, name="good")
    bad = await create(client, {"key": "a", "task": "bad"}, name="bad")
    nested = await create(client, {"key": "inner", "task": "workflow", "payload": {"steps": [WAITS]}}, name="outer")
    await ended(client, good["id"])
    await ended(client, bad["id"])

    async def inner_runs() -> bool:
        return bool((await got(client, f"/v1/workflows/{nested['id']}"))["steps"][0]["children"])

    await until(inner_runs)
    # A page that reads one parent at a time skips those that do not match.
    monkeypatch.setattr(workflows, "SCAN_MAX", 1)
    for limit in (1, 2, 50):
        assert [item["id"] for item in await listed(client, limit=limit)] == [nested["id"], bad["id"], good["id"]]
    assert [item["id"] for item in await listed(client, state="failed,completed")] == [bad["id"], good["id"]]
    (running,) = await listed(client, state="running")
    assert (running["status"], running["progress"]["share"], running["progress"]["unfinished"]) == ("running", 0.0, 1)
    (found,) = await listed(client, name="bad")
    assert (found["status"], found["reason"], found["error"]["kind"]) == ("failed", "step_failed", "StepFailed")
    assert found["progress"] == {
        "share": 1.0,
        "total": 1,
        "unfinished": 0,
        "succeeded": 0,
        "failed": 1,
        "cancelled": 0,
        "skipped": 0,
    }


async def test_an_impossible_state_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/workflows", params={"state": "compleated"})
    assert answer.status_code == 422
    assert "did you mean 'completed'" in answer.json()["detail"]


async def test_a_future_workflow_is_shown_with_its_steps_and_can_be_cancelled(
    client: httpx.AsyncClient, store: Store
) -> None:
    await store.workers.announce_tasks({"workflow": "default", "wait": "default"})
    made = await create(
        client, WAITS, {"key": "b", "task": "simulate", "after": ["ask"]}, delay_seconds=3600, on_failure="fail_fast"
    )
    shown = await got(client, f"/v1/workflows/{made['id']}")
    assert (shown["status"], shown["on_failure"], shown["progress"]["total"]) == ("scheduled", "fail_fast", 2)
    assert [(step["key"], step["id"], step["status"]) for step in shown["steps"]] == [
        ("ask", None, "pending"),
        ("b", None, "pending"),
    ]
    cancelled = (await client.post(f"/v1/workflows/{made['id']}/cancel")).json()
    assert (cancelled["status"], cancelled["steps"][0]["status"]) == ("cancelled", "cancelled")
    refused = await client.post(f"/v1/workflows/{made['id']}/redrive")
    assert refused.status_code == 409
    assert "rerun" in refused.json()["detail"]


async def test_a_workflow_is_found_by_any_of_its_runs(client: httpx.AsyncClient, worker: None) -> None:
    made = await create(client, {"key": "a", "task": "bad"})
    seen = [made["id"]]
    for _ in range(2):
        await ended(client, made["id"])
        seen.append((await client.post(f"/v1/workflows/{made['id']}/redrive")).json()["run_id"])
    await ended(client, made["id"])
    assert len(set(seen)) == 3
    for run_id in seen:
        shown = await got(client, f"/v1/workflows/{run_id}")
        assert (shown["id"], shown["run_id"]) == (made["id"], seen[-1])


@pytest.mark.parametrize("few", [0, 20_000], ids=["walked", "by parent"])
async def test_the_items_of_a_map_are_listed_by_their_parent(
    client: httpx.AsyncClient, worker: None, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(run_filters, "FEW", few)
    made = await create(client, {"key": "numbers", "task": "double", "map": {"range": {"stop": 7}}}, name="maps")
    await create(client, {"key": "another", "task": "double", "map": {"range": {"stop": 3}}})
    shown = await ended(client, made["id"])
    map_run = shown["steps"][0]["id"]
    items = await listed(client, "/v1/runs", parent=map_run, limit=3)
    assert sorted(int(item["step"]) for item in items) == list(range(7))
    assert {item["parent_id"] for item in items} == {map_run}
    assert [item["id"] for item in items] == sorted((item["id"] for item in items), reverse=True)
    assert await listed(client, "/v1/runs", parent=map_run, state="failed") == []
    assert [item["step"] for item in await listed(client, "/v1/runs", parent=made["id"])] == ["numbers"]


async def test_an_invalid_parent_is_refused(client: httpx.AsyncClient) -> None:
    for parent in ("x", "00000000-0000-7000-8000-000000000000"):
        answer = await client.get("/v1/runs", params={"parent": parent})
        assert (answer.status_code, answer.json()["field"]) == (422, "parent")
    both = await client.get("/v1/runs", params={"parent": "x", "job": "y"})
    assert both.status_code == 422


async def test_a_run_shows_its_parent_and_the_progress_of_its_children(client: httpx.AsyncClient, worker: None) -> None:
    made = await create(
        client,
        {"key": "a", "task": "double", "payload": {"item": 1}},
        {"key": "b", "signal": {}, "after": ["a"]},
        name="parts",
    )

    async def a_is_done() -> dict[str, Any] | None:
        run = await got(client, f"/v1/runs/{made['id']}")
        return run if run["progress"]["done"] == 1 else None

    whole = await until(a_is_done)
    assert whole is not None
    assert (whole["status"], whole["progress"]) == (
        "running",
        {"share": 0.5, "message": "1 of 2", "total": 2, "done": 1},
    )
    waits = await got(client, f"/v1/runs/{made['steps']['b']}")
    assert (waits["parent_id"], waits["step"], waits["upstream"]) == (made["id"], "b", [made["steps"]["a"]])
    assert (await client.post(f"/v1/runs/{made['steps']['b']}/signal", json={"payload": 7})).status_code == 200
    assert (await ended(client, made["id"]))["steps"][1]["result"] == 7
    over = await got(client, f"/v1/runs/{made['steps']['b']}")
    assert (over["parent_id"], over["step"], over["upstream"]) == (made["id"], "b", [made["steps"]["a"]])
    assert (await got(client, f"/v1/runs/{made['id']}"))["progress"] is None


async def test_invalid_bodies_and_redrives_are_refused(client: httpx.AsyncClient, worker: None) -> None:
    item = await create(client, WAITS)
    for path, body, status in [
        ("cancel", b"{", 400),
        ("cancel", b"{}", 415),
        ("cancel", b'{"force": 1}', 422),
        ("redrive", b"", 409),
        ("cancel", b"", 200),
    ]:
        headers = {} if status == 415 else {"Content-Type": "application/json"}
        answered = await client.post(f"/v1/workflows/{item['id']}/{path}", content=body, headers=headers)
        assert answered.status_code == status, answered.text


async def test_an_unknown_state_is_refused_with_the_possible_ones(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.get("/v1/workflows", params={"state": "done"})
    assert (answer.status_code, answer.json()["field"]) == (422, "state")
    assert answer.json()["detail"].endswith("there are running, completed, failed, cancelled")
