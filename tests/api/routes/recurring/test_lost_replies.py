"""Requests for recurring jobs take effect once when the database's reply is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx

from foliot.api.app import build_app
from foliot.clock import SystemClock
from foliot.config import Config
from foliot.events import EventBus
from foliot.store.store import Store, open_store
from foliot.submission.submitter import Submitter
from tests.support.proxy import Proxy, proxy_to
from tests.support.recurring import call_job, create_job, end_runs, succeed


@asynccontextmanager
async def behind_a_proxy(database_url: str) -> AsyncIterator[tuple[httpx.AsyncClient, Store, Proxy]]:
    """The application with a real clock and a connection to the database that can be cut."""
    around: dict[str, Any] = {"config": Config(), "clock": SystemClock(), "events": EventBus()}
    async with proxy_to(database_url) as (proxy, url), open_store(url, part="test", **around) as store:
        await store.workers.announce_tasks({"send_invoice": "mail"})
        submitter = Submitter(store=store, clock=around["clock"], events=around["events"])
        app = build_app(
            store=store, submitter=submitter, config=around["config"], clock=around["clock"], audit=None, is_open=True
        )
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:8000") as client:
            yield client, store, proxy


async def test_a_request_repeated_after_a_lost_answer_acts_once_and_gets_the_same_answer(
    database_url: str, sql: Any
) -> None:
    async with behind_a_proxy(database_url) as (client, store, proxy):
        proxy.swallow_answer_to("insert into foliot.jobs")
        job = await create_job(client, every="5m", name="report")
        assert proxy.swallowed.is_set()
        assert await sql.fetch("select job_id, version from foliot.job_versions") == [(UUID(job["id"]), 1)]
        proxy.swallow_answer_to("insert into foliot.runs")
        triggered = await succeed(client, "POST", "report", "/trigger")
        assert proxy.swallowed.is_set()
        assert await sql.fetch("select id from foliot.runs") == [(UUID(triggered["id"]),)]
        # The same holds after the run has ended.
        assert await end_runs(store) == 1
        assert await store.jobs.insert_triggered_run(UUID(triggered["id"]), UUID(job["id"])) == "mail"
        assert await sql.fetchval("select count(*) from foliot.runs") == 0
        for statement, method, rest, status in [
            ("set paused_at = coalesce", "POST", "/pause", 200),
            ("set paused_at = null", "POST", "/resume", 200),
            ("delete from foliot.jobs", "DELETE", "", 204),
        ]:
            proxy.swallow_answer_to(statement)
            assert (await call_job(client, method, "report", rest)).status_code == status
            assert proxy.swallowed.is_set()
