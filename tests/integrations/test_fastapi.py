"""Foliot in a real FastAPI application."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI

from foliot.errors import QueueFull
from foliot.integrations.fastapi import Foliot, answer_errors, lifespan
from foliot.store.store import Store
from tests.support.ports import free_port


def application(url: str) -> FastAPI:
    web = FastAPI(lifespan=lifespan(url))
    answer_errors(web)

    @web.get("/jobs/{job_id}")
    async def job(job_id: str, foliot: Foliot) -> str:
        return await foliot.status_async(job_id)

    @web.get("/full")
    async def full() -> str:
        raise QueueFull("the queue mail is full", retry_after=7)

    return web


def browser(web: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(web), base_url="http://shop")


async def test_routes_get_the_connection_that_the_lifespan_holds(server_url: str, store: Store) -> None:
    await store.workers.announce_tasks({"simulate": "default"})
    web = application(server_url)
    async with web.router.lifespan_context(web), browser(web) as client:
        job = await web.state.foliot.submit_async("simulate", {"execution_time_ms": 1})
        assert (await client.get(f"/jobs/{job.id}")).json() == "pending"


async def test_a_foliot_that_is_away_or_busy_is_answered_with_a_time_to_come_back() -> None:
    web = application(f"http://127.0.0.1:{free_port()}")
    async with web.router.lifespan_context(web), browser(web) as client:
        away, full = await client.get("/jobs/1"), await client.get("/full")
    assert (away.status_code, away.headers["Retry-After"], away.json()["code"]) == (503, "1", "unreachable")
    assert (full.status_code, full.headers["Retry-After"], full.json()["code"]) == (429, "7", "queue_full")


async def test_a_missing_lifespan_is_named() -> None:
    web = FastAPI()

    @web.get("/")
    async def index(foliot: Foliot) -> None: ...

    async with browser(web) as client:
        with pytest.raises(TypeError, match=r"pass lifespan=lifespan\(\)"):
            await client.get("/")
