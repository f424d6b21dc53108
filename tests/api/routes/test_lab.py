"""The API of the lab beyond its exercises: refusals, lists and cancels."""

from __future__ import annotations

from typing import Any

import httpx
import pytest


async def create(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/jobs", json={"name": "a job", **fields})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_job_runs_simulate_and_keeps_the_payload_of_the_lab(client: httpx.AsyncClient) -> None:
    made = await create(client, payload={"value": 42}, execution_time_ms=5, fail_rate=0.5, max_retries=1, priority=2)
    assert (made["job_type"], made["status"], made["attempt"], made["max_retries"]) == ("immediate", "pending", 0, 1)
    job = (await client.get(f"/v1/jobs/{made['id']}")).json()
    assert (job["task"], job["priority"]) == ("simulate", 2)
    assert job["payload"] == {"execution_time_ms": 5, "fail_rate": 0.5, "payload": {"value": 42}}
    assert (await client.get(f"/jobs/{made['id']}")).json() == made


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"job_type": "sometimes"}, "job_type"),
        ({"job_type": "delayed"}, "delay_seconds"),
        ({"job_type": "recurring"}, "cron"),
        ({"job_type": "recurring", "cron": "nope"}, "cron"),
        ({"delay_seconds": 3}, "delay_seconds"),
        ({"cron": "* * * * *"}, "cron"),
        ({"fail_rate": 2}, "fail_rate"),
        ({"execution_time_ms": -1}, "execution_time_ms"),
        ({"color": "red"}, "color"),
        ({"payload": {"a": "\0"}}, "payload.a"),
    ],
    ids=[str(number) for number in range(11)],
)
async def test_invalid_jobs_are_refused_with_their_field(
    client: httpx.AsyncClient, fields: dict[str, Any], field: str
) -> None:
    answer = await client.post("/jobs", json={"name": "a job"} | fields)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_jobs_are_listed_recurring_ones_first_and_by_status(client: httpx.AsyncClient) -> None:
    await create(client, name="now")
    await create(client, name="later", job_type="delayed", delay_seconds=600)
    await create(client, name="often", job_type="recurring", cron_expression="0 0 1 1 *")
    await client.post("/v1/jobs/often/trigger")
    listed = (await client.get("/jobs")).json()
    assert [(job["name"], job["job_type"]) for job in listed] == [
        ("often", "recurring"),
        ("later", "delayed"),
        ("now", "immediate"),
    ]
    assert len((await client.get("/jobs", params={"limit": 2})).json()) == 2
    await client.delete(f"/jobs/{listed[1]['id']}")
    assert [job["name"] for job in (await client.get("/jobs", params={"status": "cancelled"})).json()] == ["later"]
    assert [job["name"] for job in (await client.get("/jobs", params={"status": "pending"})).json()] == ["often", "now"]
    assert (await client.get("/jobs", params={"status": "nope"})).json()["field"] == "status"
    stats = (await client.get("/stats")).json()
    assert (stats["queue_length"], stats["active_workers"]) == (2, 0)
    assert stats["jobs_by_status"] == {"pending": 2, "running": 0, "completed": 0, "failed": 0, "cancelled": 1}


async def test_a_cancelled_job_stays_cancelled(client: httpx.AsyncClient) -> None:
    made = await create(client)
    assert (await client.delete(f"/jobs/{made['id']}")).json()["status"] == "cancelled"
    again = await client.delete(f"/jobs/{made['id']}")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    often = await create(client, name="often", job_type="recurring", cron="0 0 1 1 *")
    gone = (await client.delete(f"/jobs/{often['id']}")).json()
    assert (gone["status"], gone["scheduled_at"]) == ("cancelled", None)


@pytest.mark.parametrize(
    "reference", ["01a1e331-0000-7000-8000-000000000000", "nonsense", "%00"], ids=["unknown", "no id", "nul"]
)
async def test_unknown_jobs_are_not_found(client: httpx.AsyncClient, reference: str) -> None:
    for method in ("GET", "DELETE"):
        answer = await client.request(method, f"/jobs/{reference}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_lists_are_empty_without_workers(client: httpx.AsyncClient) -> None:
    assert (await client.get("/workers")).json() == []
