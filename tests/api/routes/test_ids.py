"""`GET /v1/ids/{prefix}` finds ids by their beginning, in the caller's namespace only."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from foliot.api.routes import ids
from foliot.model.ids import id_range


async def found(client: httpx.AsyncClient, prefix: str, **headers: str) -> Any:
    answer = await client.get(f"/v1/ids/{prefix}", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def submit(client: httpx.AsyncClient, path: str = "/v1/jobs", **fields: Any) -> str:
    answer = await client.post(path, json=fields)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_runs_workflows_and_jobs_are_distinguished(client: httpx.AsyncClient) -> None:
    run = await submit(client, task="simulate", name="one", delay_seconds=60)
    job = await submit(client, task="simulate", name="nightly", cron="0 3 * * *")
    workflow = await submit(client, "/v1/workflows", name="flow", steps=[{"key": "a", "task": "simulate"}])
    shown = {one["id"]: one for prefix in (run, job, workflow) for one in (await found(client, prefix[:23]))["items"]}
    assert [(shown[id_]["kind"], shown[id_]["name"], shown[id_]["status"]) for id_ in (run, job, workflow)] == [
        ("run", "one", "scheduled"),
        ("job", "nightly", "active"),
        ("workflow", "flow", "pending"),
    ]


async def test_hyphens_and_capitals_do_not_matter(client: httpx.AsyncClient) -> None:
    run = await submit(client, task="simulate")
    for prefix in (run, run.upper(), run.replace("-", ""), run[:24], run.replace("-", "")[:20]):
        assert [one["id"] for one in (await found(client, prefix))["items"]] == [run], prefix


async def test_a_run_that_has_ended_is_found(client: httpx.AsyncClient) -> None:
    run = await submit(client, task="simulate", delay_seconds=60)
    assert (await client.post(f"/v1/runs/{run}/cancel")).status_code == 200
    assert [one["status"] for one in (await found(client, run[:24]))["items"]] == ["cancelled"]


async def test_a_long_list_of_ids_is_cut_and_marked(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/jobs/batch", json={"jobs": [{"task": "simulate"} for _ in range(12)]})
    first = min(one["id"] for one in answer.json()["items"])
    listed = await found(client, first[:8])
    assert (len(listed["items"]), listed["more"]) == (10, True)
    assert listed["items"][0]["id"] == first


async def test_the_search_reads_a_bounded_number_of_ids(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ids, "SCANNED_MAX", 3)
    run = await submit(client, task="simulate")
    for _ in range(3):
        await submit(client, task="simulate")
    assert (await found(client, run[:8]))["more"]


@pytest.mark.parametrize("prefix", ["mail", "01a1f03", "01a1-f033", "01a1f033-4f6c-", "g" * 8, "0" * 33])
async def test_an_invalid_prefix_is_refused_and_an_unknown_one_finds_nothing(
    client: httpx.AsyncClient, prefix: str
) -> None:
    answer = await client.get(f"/v1/ids/{prefix}")
    if id_range(prefix) is None:
        assert (answer.status_code, answer.json()["field"]) == (422, "prefix")
    else:
        assert answer.json() == {"items": [], "more": False}
