"""The parts as separate processes on one database, as on many machines."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from foliot.store.store import Store
from tests.support.api import Api, api_of
from tests.support.processes import FoliotProcess
from tests.support.tokens import bearer, make_token
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

APP = "tests.cluster.apps:app"


def environment(database_url: str) -> dict[str, str]:
    return {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_PORT": "0"}


async def test_server_scheduler_and_workers_work_together(database_url: str, store: Store) -> None:
    around, token = environment(database_url), bearer(await make_token(store))
    async with (
        FoliotProcess("server", environment=around) as server,
        FoliotProcess("scheduler", environment=around) as scheduler,
        FoliotProcess("worker", APP, environment=around) as first,
        FoliotProcess("worker", APP, "--queue", "mail=2", "--queue", "default", environment=around) as second,
    ):
        processes = (scheduler, first, second, server)
        for process in processes[1:3]:
            await process.event("ProcessStarted", part="worker")
        async with api_of(server, part="server") as served:
            api = Api(served.client, headers=token)
            jobs = [
                await api.submit(task="greet", payload={"name": str(n)}, delay_seconds=n % 2 / 2) for n in range(20)
            ]
            for number, job in enumerate(jobs):
                assert (await api.ended(job["id"]))["result"] == f"hello {number}"
        for process in processes:
            process.signal(signal.SIGTERM)
        for process in processes:
            assert await process.wait() == 0


async def test_a_process_on_an_unmigrated_database_says_what_to_do(postgres: Any) -> None:
    name = await postgres.empty()
    around = environment(postgres.url_of(name))
    async with FoliotProcess("worker", environment=around) as worker:
        assert await worker.wait() == 3
        assert "run `foliot migrate`" in worker.lines[-1]
    async with FoliotProcess("migrate", environment=around) as migrate:
        assert await migrate.wait() == 0
    async with FoliotProcess("scheduler", environment=around) as scheduler:
        await scheduler.event("ProcessStarted", part="scheduler")
    assert not await postgres.drop(name)


async def test_a_worker_outlives_an_outage_of_its_database(postgres: Any, database_url: str, sql: Any) -> None:
    around = environment(database_url) | {"FOLIOT_WORKER_TTL_SECONDS": "3", "FOLIOT_WORKER_BEAT_SECONDS": "1"}
    async with FoliotProcess("worker", environment=around) as worker:
        await worker.event("ProcessStarted", part="worker")
        # All sessions die, and no new ones are possible until the lease has long expired.
        name, mine = await sql.fetchval("select current_database()"), await sql.fetchval("select pg_backend_pid()")
        await postgres.admin(f"alter database {name} allow_connections off")
        await postgres.admin(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> $2", name, mine
        )
        await worker.event("WorkerExpired")
        await postgres.admin(f"alter database {name} allow_connections on")
        await sql.execute("delete from foliot.workers")
        await until(lambda: sql.fetchval("select exists (select from foliot.workers)"))
