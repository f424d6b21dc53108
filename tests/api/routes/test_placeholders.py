"""Placeholders that can't be rendered are refused wherever a job is submitted, and nothing is stored."""

from __future__ import annotations

from typing import Any

import asyncpg
import httpx
import pytest

from foliot.store.store import Store
from tests.support.recurring import create_job

WRONG = "echo {{ schedule_for | date }}"
RIGHT = "echo {{ scheduled_for | date }}"
CRON = {"cron": "0 2 * * *"}


@pytest.fixture(autouse=True)
async def tasks(store: Store, client: httpx.AsyncClient) -> None:
    await store.workers.announce_tasks({"workflow": "default", "http": "default", "map": "default"})


async def stored(sql: Any) -> int:
    return int(await sql.fetchval("select (select count(*) from foliot.runs) + (select count(*) from foliot.jobs)"))


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/jobs", {"command": WRONG, **CRON}, "command"),
        ("/v1/jobs", {"command": WRONG}, "command"),
        ("/v1/jobs", {"command": RIGHT}, "command"),
        ("/v1/jobs", {"task": "shell", "payload": {"command": WRONG}}, "payload.command"),
        ("/v1/jobs", {"task": "http", "payload": {"url": "https://x.org/{{ nope }}"}}, "payload.url"),
        ("/v1/jobs", {"task": "send_invoice", "templates": True, "payload": {"a": ["{{ a"]}}, "payload.a[0]"),
        ("/v1/jobs", {"task": "send_invoice", "payload": {"day": "{{ scheduled_for }}"}, **CRON}, "payload.day"),
        ("/v1/jobs/batch", {"jobs": [{"command": "true"}, {"command": WRONG}]}, "jobs[1].command"),
        ("/v1/workflows", {"steps": [{"key": "a", "command": WRONG}]}, "steps[0].command"),
        ("/v1/workflows", {"steps": [{"key": "a", "command": RIGHT}]}, "steps[0].command"),
        ("/v1/workflows", {"steps": [{"key": "a", "command": "echo {{ results.b }}"}]}, "steps[0].command"),
        ("/v1/workflows", {**CRON, "steps": [{"key": "a", "command": WRONG}]}, "steps[0].command"),
        (
            "/v1/workflows",
            {"steps": [{"key": "a", "command": "x {{ nope }} {{ payload.item }}", "map": {"items": [1]}}]},
            "steps[0].command",
        ),
    ],
)
async def test_a_wrong_placeholder_is_refused_with_its_field(
    client: httpx.AsyncClient, sql: Any, path: str, body: dict[str, Any], field: str
) -> None:
    answer = await client.post(path, json=body)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert (problem["field"], problem["code"]) == (field, "invalid")
    assert "character" in problem["detail"] or "templates" in problem["detail"]
    assert await stored(sql) == 0


async def test_right_placeholders_are_accepted(client: httpx.AsyncClient) -> None:
    await create_job(client, task=None, command=RIGHT, name="a", **CRON)
    await create_job(client, name="b", payload={"day": "{{ scheduled_for }}"}, templates=True, **CRON)
    await create_job(client, name="c", payload={"text": "Hello {{ name }}"}, **CRON)
    steps = [{"key": "a", "command": RIGHT}, {"key": "b", "command": "echo {{ results.a }}", "after": ["a"]}]
    answer = await client.post("/v1/workflows", json={"steps": steps, "name": "d", **CRON})
    assert answer.status_code == 201, answer.text
    job = (await client.get("/v1/jobs/b")).json()
    assert job["options"] == {"templates": True}


@pytest.mark.parametrize(
    "change", [{"payload": {"command": WRONG}}, {"templates": None}, {"payload": {"command": "{{"}, "templates": True}]
)
async def test_a_change_is_checked_like_a_new_job(client: httpx.AsyncClient, change: dict[str, Any]) -> None:
    await create_job(client, task=None, command=WRONG, templates=False, name="a", **CRON)
    answer = await client.patch("/v1/jobs/a", json={"payload": {"command": RIGHT}})
    assert answer.status_code == 200, answer.text
    answer = await client.patch("/v1/jobs/a", json={"payload": {"command": WRONG}})
    assert answer.status_code == 200, answer.text
    answer = await client.patch("/v1/jobs/a", json={"templates": None, **change})
    assert (answer.status_code, answer.json()["field"]) == (422, "payload.command")


@pytest.mark.parametrize(
    ("job", "is_refused"),
    [
        ('{"task": "shell", "payload": {"command": "echo {{ nope }}"}}', True),
        ('{"task": "shell", "payload": {"command": "echo {{ scheduled_for | date }}"}}', True),
        ('{"task": "shell", "payload": {"argv": ["a", "{{ attempt"]}}', True),
        ('{"task": "send_invoice", "payload": {"a": {"b": "{{ nope }}"}}, "templates": true}', True),
        ('{"task": "send_invoice", "payload": {}, "templates": "yes"}', True),
        ('{"task": "shell", "payload": {"command": "echo {{ nope }}"}, "templates": false}', False),
        ('{"task": "send_invoice", "payload": {"a": {"b": "{{ nope }}"}}}', False),
        (
            r'{"task": "shell", "payload": {"command": "echo {{attempt}} {{ \"{{\" }} {{ previous_tick | date | '
            r"default(\"x\") }} "
            r'{{ payload.cwd[0].x | json | quote }} {{ task|default \"y\" }}", "cwd": "/"}}',
            False,
        ),
    ],
)
async def test_sql_submissions_are_checked(sql: Any, job: str, is_refused: bool) -> None:
    submitting = sql.fetchval("select foliot.submit($1::text::jsonb)", job)
    if not is_refused:
        await submitting
        return
    with pytest.raises(asyncpg.InvalidParameterValueError, match="templates"):
        await submitting


async def test_a_rerun_with_another_payload_is_checked(client: httpx.AsyncClient) -> None:
    made = (await client.post("/v1/jobs", json={"command": "true"})).json()
    answer = await client.post(f"/v1/runs/{made['id']}/rerun", json={"payload": {"command": WRONG}})
    assert (answer.status_code, answer.json()["field"]) == (422, "payload.command")
