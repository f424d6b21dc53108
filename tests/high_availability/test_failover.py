"""PostgreSQL with a synchronous standby: the primary is killed under load and the standby promoted. Nothing that was
acknowledged is lost, and work resumes by itself."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
import pytest

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.errors import StoreUnavailable
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.store.store import Store, open_store
from tests.cluster.test_schedulers import TICKS, caught_up
from tests.support.api import Api, api_of
from tests.support.jobs import make_job
from tests.support.postgres_pair import PostgresPair, postgres_pair
from tests.support.processes import FoliotProcess
from tests.support.tokens import bearer, make_token
from tests.support.waiting import until

pytestmark = [pytest.mark.deploy, pytest.mark.process, pytest.mark.timeout(600)]

APP = "tests.cluster.apps:app"
CLIENTS = 8
RECURRING = 20
RESUMES_SECONDS = 15.0
"""Promised in docs/deploying.md, after the promotion."""


class Load:
    """Clients that submit one job after the other, each with a key, and repeat a request until it is answered."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._number = 0
        self.acknowledged: dict[str, str] = {}
        """The id of the job of each key."""
        self._clients = [asyncio.create_task(self._submit(), name="client") for _ in range(CLIENTS)]

    async def _submit(self) -> None:
        while True:
            self._number += 1
            key = f"key-{self._number}"
            self.acknowledged[key] = await self._job(key)

    async def _job(self, key: str) -> str:
        headers = self._api.headers | {"Idempotency-Key": key}
        body = {"task": "simulate", "payload": {"execution_time_ms": 20}, "retries": 20}
        while True:
            try:
                answer = await self._api.client.post("/v1/jobs", json=body, headers=headers)
            except httpx.TransportError:
                continue
            if answer.is_success:
                job_id: str = answer.json()["id"]
                return job_id
            assert answer.status_code in (409, 429, 503), answer.text
            await asyncio.sleep(0.1)

    async def until_acknowledged(self, more: int) -> None:
        wanted = len(self.acknowledged) + more

        async def look() -> bool:
            for client in self._clients:
                if client.done():
                    client.result()
            return len(self.acknowledged) >= wanted

        await until(look)

    async def stop(self) -> None:
        for client in self._clients:
            client.cancel()
        await asyncio.wait(self._clients)


def store_of(pair: PostgresPair, config: Config | None = None) -> AbstractAsyncContextManager[Store]:
    return open_store(pair.url, config=config or Config(), clock=SystemClock(), events=EventBus(), part="test")


async def test_a_promoted_synchronous_standby_lacks_nothing_that_was_acknowledged() -> None:
    async with postgres_pair(is_synchronous=True) as pair, store_of(pair) as store:
        await store.migrate()
        around, token = {"FOLIOT_DATABASE_URL": pair.url, "FOLIOT_PORT": "0"}, bearer(await make_token(store))
        recurring = [
            await make_job(store, task="noop", every="1s", overlap="allow_all", catchup="all", catchup_max=10_000)
            for _ in range(RECURRING)
        ]
        async with (
            FoliotProcess("server", environment=around) as server,
            FoliotProcess("scheduler", environment=around),
            FoliotProcess("scheduler", environment=around),
            FoliotProcess("worker", APP, environment=around) as first,
            FoliotProcess("worker", APP, environment=around) as second,
            api_of(server, part="server") as served,
        ):
            for worker in (first, second):
                await worker.event("ProcessStarted", part="worker")
            load = Load(Api(served.client, headers=token))
            await load.until_acknowledged(500)
            pair.kill_primary()
            # The time that a failure detector takes.
            await asyncio.sleep(2)
            await pair.promote()
            promoted_at = time.monotonic()
            async with pair.session() as sql:
                at = await sql.fetchval("select clock_timestamp()")
                await until(
                    lambda: sql.fetchval("select exists (select from foliot.history where finished_at > $1)", at)
                )
                run_after = time.monotonic() - promoted_at
                await load.until_acknowledged(1)
                answered_after = time.monotonic() - promoted_at
                await load.until_acknowledged(300)
                await load.stop()
                await until(lambda: sql.fetchval("select not exists (select from foliot.runs where job_id is null)"))
                now = await sql.fetchval("select extract(epoch from clock_timestamp())::bigint")
                await until(lambda: caught_up(sql, now))
                await assert_nothing_lost(sql, load.acknowledged)
                await assert_every_tick_once(sql, recurring, now)
        assert max(run_after, answered_after) < RESUMES_SECONDS


async def test_a_primary_without_its_synchronous_standby_acknowledges_nothing() -> None:
    async with postgres_pair(is_synchronous=True) as pair, store_of(pair, Config(database_retry_seconds=1)) as store:
        await store.migrate()
        run = NewRun(id=new_id(), task="a", queue="mail")
        await store.run_inserts.insert_runs([NewRun(id=new_id(), task="a", queue="mail")])
        pair.kill_standby()
        with pytest.raises(StoreUnavailable):
            await store.run_inserts.insert_runs([run])
        await pair.start_standby()
        await store.run_inserts.insert_runs([run])
        pair.kill_primary()
        await pair.promote()
        async with pair.session() as sql:
            assert await sql.fetchval("select count(*) from foliot.runs where id = $1", run.id) == 1


async def test_an_asynchronous_standby_costs_what_it_has_not_received() -> None:
    async with postgres_pair(is_synchronous=False) as pair, store_of(pair) as store:
        await store.migrate()
        pair.kill_standby()
        await store.run_inserts.insert_runs([NewRun(id=new_id(), task="a", queue="mail") for _ in range(10)])
        pair.kill_primary()
        await pair.start_standby()
        await pair.promote()
        async with pair.session() as sql:
            assert await sql.fetchval("select count(*) from foliot.runs") == 0


async def assert_nothing_lost(sql: Any, acknowledged: dict[str, str]) -> None:
    rows = await sql.fetch("select id::text, state from foliot.history where job_id is null")
    states = {row[0]: row[1] for row in rows}
    assert len(acknowledged) > 800
    assert len(set(acknowledged.values())) == len(acknowledged)
    lost = [key for key, job_id in acknowledged.items() if states.get(job_id) != "succeeded"]
    assert lost == []


async def assert_every_tick_once(sql: Any, jobs: list[Any], now: int) -> None:
    ended = (
        "select job_id, extract(epoch from tick_at)::bigint, extract(epoch from tick_at)::bigint from foliot.history"
    )
    rows = await sql.fetch(f"{TICKS} union all {ended} where job_id is not null")
    seen: dict[Any, list[int]] = {job.id: [] for job in jobs}
    for job_id, first, last in rows:
        seen[job_id].extend(range(first, last + 1))
    for job in jobs:
        start = int(job.next_at.timestamp())
        assert sorted(tick for tick in seen[job.id] if tick <= now) == list(range(start, now + 1))
