"""`/v1/jobs/check` and `/v1/workflows/check`: the same result and errors as a creation, with nothing stored."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from foliot.store.store import Store

STORED = (
    "select (select count(*) from foliot.runs) + (select count(*) from foliot.jobs) + (select count(*) from "
    "foliot.audit)"
)


@pytest.fixture(autouse=True)
async def announced(client: httpx.AsyncClient, store: Store) -> None:
    queues = {"charge": "money", "workflow": "default", "simulate": "default"}
    await store.workers.announce_tasks(queues, tags={"charge": ["billing"]})


async def test_a_check_shows_the_job_as_it_would_be_stored(client: httpx.AsyncClient, sql: Any) -> None:
    answer = await client.post(
        "/v1/jobs/check", json={"name": "n", "task": "charge", "every": "1h", "payload": {"a": 1}}
    )
    assert answer.status_code == 200, answer.text
    expected = {
        "name": "n",
        "task": "charge",
        "queue": "money",
        "priority": 0,
        "payload": {"a": 1},
        "tags": ["billing"],
    }
    assert answer.json() == expected | {"is_recurring": True}
    once = (await client.post("/v1/jobs/check", json={"command": "date", "tags": []})).json()
    assert (once["task"], once["payload"], once["tags"], once["is_recurring"]) == (
        "shell",
        {"command": "date"},
        [],
        False,
    )
    flow = (await client.post("/v1/workflows/check", json={"steps": [{"key": "a", "task": "charge"}]})).json()
    assert flow["payload"]["steps"] == [{"key": "a", "task": "charge", "queue": "money", "tags": ["billing"]}]
    assert await sql.fetchval(STORED) == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("jobs", {"task": "nobody"}),
        ("jobs", {"task": "charge", "cron": "61 * * * *"}),
        ("jobs", {"task": "charge", "every": "1h", "calendar": "none"}),
        ("jobs", {"task": "charge", "dependencies": ["nobody"]}),
        ("jobs", {"task": "shell", "payload": {"sandbox": True}}),
        ("jobs", {"task": "charge", "delay_seconds": 1, "schedule_time": "2099-01-01T00:00:00Z"}),
        ("jobs", {"task": "charge", "strange": 1}),
        ("workflows", {"steps": [{"key": "a", "task": "nobody"}]}),
        ("workflows", {"cron": "61 * * * *", "steps": [{"key": "a", "task": "charge"}]}),
        ("workflows", {"steps": [{"key": "a", "task": "charge", "after": ["a"]}]}),
    ],
)
async def test_a_check_reports_the_same_errors_as_a_creation(
    client: httpx.AsyncClient, sql: Any, path: str, body: Any
) -> None:
    checked, created = [await client.post(f"/v1/{where}", json=body) for where in (f"{path}/check", path)]
    told = [
        {name: answer.json().get(name) for name in ("status", "code", "field", "detail")}
        for answer in (checked, created)
    ]
    assert checked.status_code == 422, checked.text
    assert told[0] == told[1]
