"""Creating recurring jobs over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import httpx

from foliot.store.store import Store
from tests.support.problems import problem_of
from tests.support.recurring import create_job, get_job


async def test_a_job_by_cron_waits_for_its_first_tick_after_now(client: httpx.AsyncClient, sql: Any) -> None:
    job = await create_job(
        client,
        cron="0 9 * * MON-FRI",
        timezone="Europe/Zurich",
        name="morning",
        payload={"customer": 7},
        retries=2,
        max_runs=5,
    )
    assert job["next_at"] == "2026-03-02T08:00:00Z"
    assert {
        key: job[key]
        for key in ("name", "status", "task", "queue", "priority", "payload", "options", "version", "runs_left")
    } == {
        "name": "morning",
        "status": "active",
        "task": "send_invoice",
        "queue": "mail",
        "priority": 0,
        "payload": {"customer": 7},
        "options": {"retries": 2},
        "version": 1,
        "runs_left": 5,
    }
    assert (job["schedule"]["cron"], job["schedule"]["timezone"]) == ("0 9 * * MON-FRI", "Europe/Zurich")
    assert job["created"] is True
    assert await sql.fetchval("select count(*) from foliot.runs") == 0


async def test_a_job_by_period_counts_from_its_creation_or_its_start(client: httpx.AsyncClient) -> None:
    job = await create_job(client, every="1h30m")
    assert (job["created_at"], job["next_at"]) == ("2026-03-01T12:00:00Z", "2026-03-01T13:30:00Z")

    assert (await create_job(client, every="7h", start_at="2026-03-05T10:00:00+01:00"))[
        "next_at"
    ] == "2026-03-05T09:00:00Z"
    assert (await create_job(client, every="7h", start_at="2026-03-01T00:00:00Z"))["next_at"] == "2026-03-01T14:00:00Z"


async def test_a_schedule_may_be_a_cron_expression(client: httpx.AsyncClient) -> None:
    by_cron, by_schedule = (
        await create_job(client, cron="*/20 * * * *"),
        await create_job(client, schedule="*/20 * * * *"),
    )
    assert by_schedule["schedule"] == by_cron["schedule"]
    assert by_schedule["next_at"] == by_cron["next_at"] == "2026-03-01T12:20:00Z"


async def test_a_schedule_may_be_a_time_and_then_makes_a_one_off_job(client: httpx.AsyncClient, sql: Any) -> None:
    job = await create_job(client, schedule="2026-03-01T18:00:00+05:30", name="any / name")
    assert (job["status"], job["scheduled_at"]) == ("scheduled", "2026-03-01T12:30:00Z")
    assert await sql.fetchval("select count(*) from foliot.jobs") == 0
    assert await sql.fetchval("select id from foliot.runs") == UUID(job["id"])


async def test_jitter_delays_the_firing_and_not_the_tick(client: httpx.AsyncClient, sql: Any) -> None:
    for _ in range(5):
        assert (await create_job(client, cron="0 13 * * *", jitter_seconds=600))["next_at"] == "2026-03-01T13:00:00Z"
    delays = [
        row[0] for row in await sql.fetch("select extract(epoch from fire_at - next_at)::bigint from foliot.jobs")
    ]
    assert all(0 <= delay <= 600 for delay in delays)
    assert len(set(delays)) > 1


async def test_a_name_that_is_taken_is_a_conflict(client: httpx.AsyncClient, sql: Any) -> None:
    first = await create_job(client, every="5m", name="report")
    assert problem_of(await client.post("/v1/jobs", json={"command": "true", "cron": "@daily", "name": "report"})) == (
        409,
        "conflict",
        None,
    )
    assert (await get_job(client, "report"))["id"] == first["id"]
    # One of several concurrent requests for a name gets it.
    bodies = [{"task": "send_invoice", "every": "5m", "name": "other", "priority": number} for number in range(8)]
    answers = await asyncio.gather(*(client.post("/v1/jobs", json=body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    (winner,) = (answer.json() for answer in answers if answer.status_code == 201)
    assert (await get_job(client, "other"))["priority"] == winner["priority"]
    assert {row[0] for row in await sql.fetch("select job_id from foliot.job_versions")} == {
        UUID(first["id"]),
        UUID(winner["id"]),
    }


async def test_a_job_without_a_name_gets_one(client: httpx.AsyncClient, store: Store) -> None:
    longest = "t" * 200
    await store.workers.announce_tasks({longest: "default"})
    for task in ("send_invoice", longest):
        one, other = await create_job(client, task=task, every="5m"), await create_job(client, task=task, every="5m")
        assert one["name"] != other["name"]
        assert one["name"].startswith(task[:180])
        assert len(one["name"]) <= 200
        assert (await get_job(client, one["name"]))["id"] == one["id"]
