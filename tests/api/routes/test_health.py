"""A live server is ready only if PostgreSQL answers and accepts writes."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from foliot.api.app import build_app
from foliot.api.routes import health
from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.store.store import Store, open_store
from foliot.submission.submitter import Submitter
from tests.support.proxy import proxy_to
from tests.support.waiting import PATIENCE_SECONDS

PATIENCE = 0.3


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "READY_SECONDS", PATIENCE)


async def assert_alive_but_not_ready(client: httpx.AsyncClient) -> None:
    assert (await client.get("/healthz")).status_code == 200
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()["code"]) == (503, "store_unavailable")
    assert ready.headers["content-type"] == "application/problem+json"


async def test_a_working_server_is_alive_and_ready(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "READY_SECONDS", 10)
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})


async def test_without_its_database_it_is_not_ready(client: httpx.AsyncClient, store: Store) -> None:
    await store.database.close()
    await assert_alive_but_not_ready(client)


async def test_a_read_only_database_is_not_ready(client: httpx.AsyncClient, sql: Any) -> None:
    database = await sql.fetchval("select current_database()")
    await sql.execute(f"alter database {database} set default_transaction_read_only = on")
    await sql.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()",
        database,
    )
    await assert_alive_but_not_ready(client)


async def test_a_silent_database_does_not_delay_the_answer(database_url: str, clock: Clock, events: EventBus) -> None:
    config = Config(database_statement_seconds=120, database_connect_seconds=120)
    async with (
        proxy_to(database_url) as (proxy, url),
        open_store(url, config=config, clock=clock, events=events, part="test") as store,
    ):
        submitter = Submitter(store=store, clock=clock, events=events)
        app = build_app(store=store, submitter=submitter, config=config, clock=clock, audit=None, is_open=True)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            proxy.is_silent = True
            async with asyncio.timeout(PATIENCE_SECONDS):
                await assert_alive_but_not_ready(client)
