"""Real workers that are alive in a real etcd or ZooKeeper: killed and cut off, with the service killed, frozen and
wiped. Runs of dead workers move, and those of healthy workers never do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

import pytest

from foliot.store.store import Store
from tests.support.coordination.server import CoordinatorServer
from tests.support.cuttable import cuttable
from tests.support.processes import FoliotProcess
from tests.support.runs import insert
from tests.support.waiting import until

pytestmark = [pytest.mark.deploy, pytest.mark.process, pytest.mark.timeout(600)]

APP = "tests.cluster.apps:app"
SESSION_SECONDS = 8
# With an entry, a lease lasts for 72 s.
SETTINGS = {
    "FOLIOT_WORKER_LIVENESS": "coordinator",
    "FOLIOT_WORKER_TTL_SECONDS": "9",
    "FOLIOT_WORKER_BEAT_SECONDS": "1",
    "FOLIOT_REAPER_SECONDS": "0.5",
    "FOLIOT_COORDINATION_SESSION_SECONDS": str(SESSION_SECONDS),
}
PAYLOAD = '{"execution_time_ms": 600000}'
ROW = "select session_id, beat_at, expires_at - beat_at > interval '1 minute' as is_long from foliot.workers"
LOST = "select coalesce(sum(lost), 0)::bigint from foliot.runs"


class Cluster:
    def __init__(self, server: CoordinatorServer, database_url: str, sql: Any, store: Store) -> None:
        self.sql = sql
        self.server = server
        self.scheduler: FoliotProcess
        self._store = store
        self._stack = AsyncExitStack()
        settings = {f"FOLIOT_{name.upper()}": str(value) for name, value in server.settings().items()}
        self._around = settings | SETTINGS | {"FOLIOT_DATABASE_URL": database_url}

    async def start(self, part: str, *arguments: str, **around: str) -> FoliotProcess:
        process = FoliotProcess(part, *arguments, environment=self._around | around)
        await self._stack.enter_async_context(process)
        await process.event("ProcessStarted", part=part)
        return process

    async def worker(self, *, port: int | None = None) -> FoliotProcess:
        """`port`: of a proxy before the coordinator."""
        around = {} if port is None else {"FOLIOT_COORDINATION_URL": self.server.url_at(port)}
        worker = await self.start("worker", APP, **around)
        await worker.event("CoordinatorJoined", coordinator=self.server.kind)
        return worker

    async def busy(self, number: int) -> None:
        """Gives the workers something to do for as long as the test lasts."""
        for _ in range(number):
            await insert(self._store, task="simulate", queue="default", payload=PAYLOAD)
        await until(lambda: self.running(number))

    async def running(self, number: int) -> bool:
        found = await self.sql.fetchval("select count(*) from foliot.runs where state = 'running'")
        return bool(found == number)

    async def lost(self) -> int:
        return int(await self.sql.fetchval(LOST))

    async def sessions(self) -> list[UUID | None]:
        return [row["session_id"] for row in await self.sql.fetch(ROW)]

    async def has_sessions(self, *expected: bool) -> bool:
        return sorted(session is not None for session in await self.sessions()) == sorted(expected)

    async def close(self) -> None:
        await self._stack.aclose()


@pytest.fixture
async def cluster(server: CoordinatorServer, database_url: str, store: Store, sql: Any) -> AsyncIterator[Cluster]:
    cluster = Cluster(server, database_url, sql, store)
    cluster.scheduler = await cluster.start("scheduler")
    yield cluster
    await cluster.close()


async def test_a_worker_with_an_entry_rarely_writes_and_its_runs_move_soon_after_its_death(cluster: Cluster) -> None:
    worker = await cluster.worker()
    await cluster.busy(2)
    before = await cluster.sql.fetchrow(ROW)
    assert before["is_long"]
    # Several times the usual time between two heartbeats; nothing announces what does not happen.
    await asyncio.sleep(4)
    assert await cluster.sql.fetchrow(ROW) == before
    worker.kill_tree()
    await cluster.worker()
    # Not by its lease in PostgreSQL, which lasts for longer.
    await cluster.scheduler.event("WorkersGone", count=1)
    await until(cluster.lost)
    await until(lambda: cluster.running(2))
    assert await cluster.lost() == 2


async def test_a_cancel_reaches_a_worker_with_an_entry(cluster: Cluster, store: Store) -> None:
    await cluster.worker()
    await cluster.busy(1)
    run_id = await cluster.sql.fetchval("select id from foliot.runs")
    # Without a hint: the worker looks by itself.
    await store.cancellation.mark_cancelled([run_id], "no more", is_forced=False)
    await until(lambda: cluster.sql.fetchval("select exists (select from foliot.history where state = 'cancelled')"))


async def test_healthy_workers_keep_their_runs_whatever_happens_to_the_service(cluster: Cluster) -> None:
    workers = [await cluster.worker() for _ in range(2)]
    await cluster.busy(4)
    server = cluster.server
    for harm, repair in ((server.kill, server.start), (server.freeze, server.thaw)):
        await asyncio.to_thread(harm)
        await until(lambda: cluster.has_sessions(False, False))
        # Longer than the wait after which a missing entry ends a lease.
        await asyncio.sleep(SESSION_SECONDS + 2)
        await asyncio.to_thread(repair)
        await until(lambda: cluster.has_sessions(True, True))
    before = set(await cluster.sessions())
    await asyncio.to_thread(server.wipe)

    async def are_new() -> bool:
        now = set(await cluster.sessions())
        return None not in now and not now & before

    await until(are_new)
    await asyncio.sleep(SESSION_SECONDS + 2)
    assert await cluster.running(4)
    assert await cluster.lost() == 0
    assert all([event["event"] for event in one.events].count("WorkerRegistered") == 1 for one in workers)


async def test_an_entry_that_somebody_removes_moves_nothing(cluster: Cluster) -> None:
    worker = await cluster.worker()
    await cluster.busy(2)
    (session,) = await cluster.sessions()
    await cluster.server.remove_worker(cluster._around["FOLIOT_COORDINATION_PREFIX"], str(session))
    await worker.event("CoordinatorLost")

    async def is_another() -> bool:
        return (await cluster.sessions())[0] not in (None, session)

    await until(is_another)
    await asyncio.sleep(SESSION_SECONDS + 2)
    assert await cluster.running(2)
    assert await cluster.lost() == 0


async def test_a_worker_that_dies_while_the_service_is_away_is_found_by_its_lease(cluster: Cluster) -> None:
    first, second = await cluster.worker(), await cluster.worker()
    await cluster.busy(2)
    cluster.server.kill()
    await until(lambda: cluster.has_sessions(False, False))
    first.kill_tree()
    second.kill_tree()
    await until(cluster.lost)
    await asyncio.to_thread(cluster.server.start)


async def test_a_worker_that_alone_is_cut_off_keeps_its_runs(cluster: Cluster) -> None:
    async with cuttable(cluster.server.port) as proxy:
        worker, _ = await cluster.worker(port=proxy.port), await cluster.worker()
        await cluster.busy(4)
        proxy.cut()
        await worker.event("CoordinatorLost")
        await until(lambda: cluster.has_sessions(False, True))
        await asyncio.sleep(SESSION_SECONDS + 2)
        assert await cluster.running(4)
        assert await cluster.lost() == 0
        proxy.heal()
        await until(lambda: cluster.has_sessions(True, True))
        await cluster.close()
