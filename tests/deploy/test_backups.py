"""A dump that is taken under load, restored into an empty database, continues where it was taken."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from foliot.embedded.binaries import find_binaries
from tests.support.api import Api, api_of
from tests.support.processes import FoliotProcess
from tests.support.server import PostgresServer
from tests.support.waiting import until

pytestmark = [pytest.mark.deploy, pytest.mark.process, pytest.mark.timeout(600)]
APP = "tests.cluster.apps:app"


@asynccontextmanager
async def foliot_on(url: str) -> AsyncIterator[Api]:
    environment = {"FOLIOT_DATABASE_URL": url, "FOLIOT_PORT": "0", "FOLIOT_GRACE_SECONDS": "1"}
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(FoliotProcess("server", "--open", environment=environment))
        await stack.enter_async_context(FoliotProcess("scheduler", environment=environment))
        worker = await stack.enter_async_context(FoliotProcess("worker", APP, environment=environment))
        await worker.event("ProcessStarted", part="worker")
        yield await stack.enter_async_context(api_of(server, part="server"))


async def run(program: str, *arguments: str) -> None:
    directory = find_binaries(os.environ.get("TEST_PG_BIN", ""), Path("/nothing")).directory
    if not (Path(directory) / program).exists():
        pytest.skip(f"{program} is not in {directory}")
    process = await asyncio.create_subprocess_exec(str(Path(directory) / program), *arguments)
    assert await process.wait() == 0, program


@pytest.fixture
async def other_url(postgres: PostgresServer) -> AsyncIterator[str]:
    """An empty database, as `createdb` makes it."""
    name = await postgres.empty()
    yield postgres.url_of(name)
    assert not await postgres.drop(name)


async def ids_of(session: Any) -> tuple[set[str], set[str]]:
    """The ids of live runs and of ended ones. Each ended run is in history once."""
    live = {str(row[0]) for row in await session.fetch("select id from foliot.runs")}
    ended = [str(row[0]) for row in await session.fetch("select id from foliot.history")]
    assert len(ended) == len(set(ended))
    return live, set(ended)


async def test_a_restored_dump_continues(database_url: str, other_url: str, tmp_path: Path) -> None:
    dump = str(tmp_path / "foliot.dump")
    async with foliot_on(database_url) as api:
        ended = await api.submit(task="greet", payload={"name": "Ada"}, queue="default")
        await api.ended(ended["id"])
        recurring = await api.submit(name="pulse", task="noop", every="1s")
        waiting = await api.submit(task="noop", signal={})
        running = await api.submit(task="linger", payload={"seconds": 3600}, timeout_seconds=7200)
        await api.status(running["id"], "running")
        steps = [{"key": "one", "task": "noop", "signal": {}}, {"key": "two", "task": "noop", "after": ["one"]}]
        answer = await api.client.post("/v1/workflows", json={"name": "flow", "steps": steps})
        flow = answer.json()
        burst = [(await api.submit(task="noop"))["id"] for _ in range(200)]
        await run("pg_dump", "--format=custom", f"--file={dump}", database_url)
    await run("pg_restore", "--no-owner", "--exit-on-error", f"--dbname={other_url}", dump)

    session = await asyncpg.connect(other_url)
    try:
        live, over = await ids_of(session)
        assert ended["id"] in over
        assert {waiting["id"], running["id"]} <= live
        assert set(burst) <= live | over
        before = await session.fetchval("select count(*) from foliot.history where job_id = $1", recurring["id"])
        # The worker that ran it is not there any more, as its lease in the dump says soon.
        await session.execute("update foliot.workers set expires_at = now() - interval '1 second'")
        async with foliot_on(other_url) as api:
            assert (await api.get(ended["id"]))["result"] == "hello Ada"
            for job in burst:
                assert (await api.ended(job))["status"] == "completed"
            lost = await api.status(running["id"], "running")
            assert lost["attempt"] == 2
            await api.client.post(f"/v1/runs/{running['id']}/cancel", json={"force": True})
            await api.client.post(f"/v1/runs/{waiting['id']}/signal", json={})
            assert (await api.ended(waiting["id"]))["status"] == "completed"
            one = (await api.client.get(f"/v1/workflows/{flow['id']}")).json()["steps"][0]
            await api.client.post(f"/v1/runs/{one['id']}/signal", json={})
            assert (await api.ended(flow["id"]))["status"] == "completed"

            async def has_fired() -> bool:
                fired = await session.fetchval("select count(*) from foliot.history where job_id = $1", recurring["id"])
                return bool(fired >= before + 2)

            await until(has_fired)
        live, over = await ids_of(session)
        assert set(burst) | {waiting["id"], flow["id"]} <= over
        repeated = "select count(*) - count(distinct due_at) from foliot.history where job_id = $1"
        assert await session.fetchval(repeated, recurring["id"]) == 0
    finally:
        await session.close()
