"""Processes that run while a newer Foliot migrates their database either continue, or stop with a reason. Nothing is
lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

from foliot.errors import SchemaError
from foliot.sdk import direct_submission
from foliot.sdk.direct_client import DatabaseClient
from foliot.sdk.jobs import Alike
from foliot.store import migrate
from foliot.store.store import Store
from tests.support.api import Api, api_of
from tests.support.processes import FoliotProcess
from tests.support.tokens import bearer, make_token
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]
APP = "tests.cluster.apps:app"
MISFIT = 3
LIVE_OR_ENDED = "select id::text from foliot.runs union all select id::text from foliot.history"


class Cluster:
    def __init__(self, processes: dict[str, FoliotProcess], api: Api) -> None:
        self.processes = processes
        self.api = api
        self.acknowledged: list[str] = []

    @asynccontextmanager
    async def load(self) -> AsyncIterator[None]:
        """Submits jobs without end. Jobs that were refused or not acknowledged may or may not exist."""
        is_over = asyncio.Event()

        async def submit() -> None:
            while not is_over.is_set():
                try:
                    answer = await self.api.client.post("/v1/jobs", json={"task": "noop"}, headers=self.api.headers)
                except httpx.HTTPError:
                    await asyncio.sleep(0.05)
                    continue
                if answer.status_code == 201:
                    self.acknowledged.append(answer.json()["id"])
                await asyncio.sleep(0.005)

        submitting = [asyncio.create_task(submit(), name="submit") for _ in range(3)]
        try:
            yield
        finally:
            is_over.set()
            await asyncio.gather(*submitting)

    async def more(self, number: int = 30) -> None:
        """Returns when this number of further jobs has been acknowledged."""
        wanted = len(self.acknowledged) + number
        await until(lambda: _truth(len(self.acknowledged) >= wanted))


async def _truth(value: bool) -> bool:
    return value


@pytest.fixture
async def cluster(database_url: str, store: Store) -> AsyncIterator[Cluster]:
    around, token = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_PORT": "0"}, bearer(await make_token(store))
    commands = {"server": ["server"], "scheduler": ["scheduler"], "worker": ["worker", APP]}
    async with AsyncExitStack() as stack:
        processes = {
            part: await stack.enter_async_context(FoliotProcess(*words, environment=around))
            for part, words in commands.items()
        }
        for part, process in processes.items():
            await process.event("ProcessStarted", part=part)
        served = await stack.enter_async_context(api_of(processes["server"], part="server"))
        yield Cluster(processes, Api(served.client, headers=token))


def pretend(monkeypatch: pytest.MonkeyPatch, works_beside: int | None, sql: str) -> int:
    """From here on this process acts as a future Foliot with one more migration. Returns its version."""
    known = migrate.known_migrations()
    version = known[-1].version + 1
    first = "" if works_beside is None else f"-- works beside: {works_beside}\n"
    monkeypatch.setattr(
        migrate, "known_migrations", lambda: [*known, migrate.Migration(version, "future", first + sql)]
    )
    return version


async def missing(cluster: Cluster, sql: Any) -> set[str]:
    return set(cluster.acknowledged) - {row[0] for row in await sql.fetch(LIVE_OR_ENDED)}


@pytest.mark.slow
async def test_processes_continue_during_a_compatible_migration(
    cluster: Cluster, store: Store, sql: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = migrate.known_migrations()[-1].version
    version = pretend(
        monkeypatch,
        newest,
        "alter table foliot.runs add column future text; alter table foliot.history add column future text default 'x'",
    )
    async with cluster.load():
        await cluster.more()
        assert await store.migrate() == version
        for process in cluster.processes.values():
            assert (await process.event("SchemaIsNewer"))["version"] == version
        await cluster.more()
        # The same holds for a process that starts only now.
        around = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_PORT": "0"}
        async with FoliotProcess("worker", APP, environment=around) as late:
            await late.event("ProcessStarted", part="worker")
    await until(lambda: sql.fetchval("select count(*) = 0 from foliot.runs"))
    assert not await missing(cluster, sql)
    assert await sql.fetchval("select count(*) from foliot.history where state <> 'succeeded'") == 0
    for process in cluster.processes.values():
        assert not [event for event in process.events if event["event"] in ("ServiceFailed", "SchemaIsTooNew")]


@pytest.mark.slow
async def test_processes_left_behind_by_a_migration_stop_with_a_reason_and_lose_nothing(
    cluster: Cluster, store: Store, sql: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrate.known_migrations()
    version = pretend(monkeypatch, None, "alter table foliot.runs rename column progress to future")
    async with cluster.load():
        await cluster.more()
        with pytest.raises(SchemaError) as refused:
            await store.migrate()
        assert all(f"{part} " in refused.value.detail for part in cluster.processes)
        await cluster.more()
        await store.migrate(is_forced=True)
        for process in cluster.processes.values():
            await process.event("SchemaIsTooNew", version=version, needs=version, knows=known[-1].version)
    for process in cluster.processes.values():
        assert await process.wait() == MISFIT
        assert "install a newer Foliot" in process.lines[-1]
    assert not await missing(cluster, sql)
    around = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_PORT": "0"}
    async with FoliotProcess("worker", APP, environment=around) as late:
        assert await late.wait() == MISFIT, "it does not even start"
    # The newer Foliot starts: here, the same code on a schema that it knows.
    await sql.execute("alter table foliot.runs rename column future to progress")
    await sql.execute("delete from foliot.migrations where version = $1", version)
    async with FoliotProcess("scheduler", environment=around), FoliotProcess("worker", APP, environment=around):
        await until(lambda: sql.fetchval("select count(*) = 0 from foliot.runs"))
    assert not await missing(cluster, sql)
    assert await sql.fetchval("select count(*) from foliot.history where state <> 'succeeded'") == 0
    assert await sql.fetchval("select count(*) = count(distinct id) from foliot.history")


@pytest.mark.slow
async def test_foliot_up_ends_with_its_children(database_url: str, sql: Any) -> None:
    around = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_PORT": "0", "FOLIOT_WORKERS": "1"}
    async with FoliotProcess("up", environment=around) as up:
        await up.event("ProcessStarted", part="up")
        await sql.execute("insert into foliot.migrations (version, name, checksum) values (9999, 'future', 'x')")
        await up.event("SchemaIsTooNew", version=9999)
        assert await up.wait() == MISFIT
        assert "install a newer Foliot" in up.lines[-1]


async def test_a_program_that_submits_straight_to_the_database_gets_an_error(
    database_url: str, store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_submission, "SCHEMA_CHECK_SECONDS", 0.0)
    await store.workers.announce_tasks({"noop": "default"})
    client = DatabaseClient(database_url)
    try:
        await asyncio.to_thread(client.create_job, {"task": "noop"})
        await sql.execute("insert into foliot.migrations (version, name, checksum) values (9999, 'future', 'x')")
        for job in ({"task": "noop"}, {"task": "noop", "unique": {"key": "k"}}):
            with pytest.raises(SchemaError, match="newer than"):
                await asyncio.to_thread(client.create_job, job)
        with pytest.raises(SchemaError, match="newer than"):
            await asyncio.to_thread(client.create_alike, Alike({"task": "noop"}, [{}, {}]))
    finally:
        await asyncio.to_thread(client.close)
    assert await sql.fetchval("select count(*) from foliot.runs") == 1
