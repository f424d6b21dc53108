"""Triggering recurring jobs by hand."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any
from uuid import UUID

import httpx

from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.recurring import create_job, end_runs, get_job, succeed


async def test_a_trigger_makes_one_run_from_the_current_version_of_the_job(
    client: httpx.AsyncClient, sql: Any, fake_clock: FakeClock
) -> None:
    options = {"retries": 2, "timeout_seconds": 1.5, "backoff": {"kind": "fixed", "base_seconds": 1.0}}
    job = await create_job(
        client, cron="@daily", name="report", queue="bulk", priority=7, payload={"a": [1, "😀"]}, **options
    )
    await fake_clock.advance(90)
    triggered = await succeed(client, "POST", "report", "/trigger")
    assert triggered["job_id"] == job["id"]
    (run,) = await sql.fetch("select id, job_id, tick_at, name from foliot.runs")
    assert tuple(run) == (UUID(triggered["id"]), UUID(job["id"]), fake_clock.now(), "report")
    shown = await get_job(client, triggered["id"])
    expected = {
        "state": "ready",
        "task": "send_invoice",
        "queue": "bulk",
        "priority": 7,
        "payload": job["payload"],
        "options": options,
    }
    assert {key: shown[key] for key in expected} == expected
    assert datetime.fromisoformat(shown["scheduled_at"]) == fake_clock.now()
    assert await get_job(client, "report") == job | {"created": False}
    await succeed(client, "PATCH", "report", payload={"a": 2}, queue="mail")
    shown = await get_job(client, (await succeed(client, "POST", "report", "/trigger"))["id"])
    assert (shown["payload"], shown["queue"]) == ({"a": 2}, "mail")


async def test_every_trigger_makes_its_own_run_even_while_paused(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    await create_job(client, every="10m", name="report")
    await succeed(client, "POST", "report", "/pause")
    runs = await asyncio.gather(*(succeed(client, "POST", "report", "/trigger") for _ in range(5)))
    assert {row[0] for row in await sql.fetch("select id from foliot.runs")} == {UUID(run["id"]) for run in runs}
    assert await end_runs(store) == 5
