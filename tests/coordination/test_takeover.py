"""Real scheduler nodes on a real etcd or ZooKeeper: killed, frozen and cut off, with the service killed and wiped.
Every tick exists exactly once, and shards of the dead are taken over long before their leases in PostgreSQL end."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any

import pytest

from foliot.store.store import Store
from tests.cluster.test_schedulers import TICKS, caught_up
from tests.support.coordination.server import CoordinatorServer
from tests.support.cuttable import cuttable
from tests.support.jobs import make_job
from tests.support.processes import FoliotProcess
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

# Leases in PostgreSQL that can't explain a takeover within a test.
LONG_LEASES = {"FOLIOT_SHARD_TTL_SECONDS": "600", "FOLIOT_SHARD_RENEW_SECONDS": "200"}
DEATHS = 3
TAKEN_SECONDS = 3.0


def node(database_url: str, settings: dict[str, Any], more: dict[str, str] | None = None) -> FoliotProcess:
    environment = {f"FOLIOT_{name.upper()}": str(value) for name, value in settings.items()}
    return FoliotProcess("scheduler", environment=environment | {"FOLIOT_DATABASE_URL": database_url} | (more or {}))


async def owned(sql: Any) -> dict[str, int]:
    """The number of shards of each node, by the name of its process."""
    rows = await sql.fetch(
        "select n.name, count(*) from foliot.shards s join foliot.schedulers n on n.id = s.owner_id group by n.name"
    )
    return {row[0].rpartition(":")[2]: row[1] for row in rows}


async def until_owned(sql: Any, *expected: tuple[FoliotProcess, int]) -> None:
    async def look() -> bool:
        return await owned(sql) == {str(process.pid): count for process, count in expected}

    await until(look)


async def all_taken(process: FoliotProcess, *, after: dict[str, Any]) -> dict[str, Any]:
    """The event by which a node got all shards, or nothing. It may have had them before as well."""
    later = process.events[process.events.index(after) :]
    return next((one for one in later if one["event"] == "ShardsChanged" and one["count"] == 100), {})


def seconds_between(first: dict[str, Any], second: dict[str, Any]) -> float:
    return (datetime.fromisoformat(second["at"]) - datetime.fromisoformat(first["at"])).total_seconds()


async def test_the_shards_of_a_killed_node_move_within_three_seconds_of_the_end_of_its_session(
    server: CoordinatorServer, database_url: str, sql: Any
) -> None:
    # Long enough for a busy machine: a session that ends by mistake would move shards, too.
    settings, took = server.settings() | {"coordination_session_seconds": 6.0}, []
    async with node(database_url, settings, LONG_LEASES) as survivor:
        # A busy machine may need longer, but hardly three times in a row.
        for number in range(1, DEATHS + 1):
            async with node(database_url, settings, LONG_LEASES) as victim:
                await until_owned(sql, (survivor, 50), (victim, 50))

                async def is_shown() -> bool:
                    shown = await server.shards(settings["coordination_prefix"])
                    return sorted(len(shards.split(",")) for shards in shown) == [50, 50]

                await until(is_shown)
                victim.kill_tree()
                gone = await until(lambda: nth(survivor, "MembersGone", number))  # noqa: B023
                taken = await until(lambda: all_taken(survivor, after=gone))  # noqa: B023
                took.append(seconds_between(gone, taken))
    print(f"{server.kind}: shards moved {took} s after the end of a session")  # noqa: T201
    assert 0 <= min(took) <= TAKEN_SECONDS


async def nth(process: FoliotProcess, name: str, number: int) -> dict[str, Any]:
    """The event of this name with this number, or nothing."""
    found = [event for event in process.events if event["event"] == name]
    return found[number - 1] if len(found) >= number else {}


async def test_a_frozen_node_loses_its_shards_and_gets_a_share_when_it_wakes(
    server: CoordinatorServer, database_url: str, sql: Any
) -> None:
    settings = server.settings()
    async with node(database_url, settings, LONG_LEASES) as first, node(database_url, settings, LONG_LEASES) as second:
        await until_owned(sql, (first, 50), (second, 50))
        first.signal(signal.SIGSTOP)
        await until_owned(sql, (second, 100))
        first.signal(signal.SIGCONT)
        await until_owned(sql, (first, 50), (second, 50))


async def test_without_its_service_nothing_moves_and_new_nodes_get_a_share(
    server: CoordinatorServer, database_url: str, sql: Any
) -> None:
    settings = server.settings() | {"shard_ttl_seconds": 4, "shard_renew_seconds": 1}
    async with node(database_url, settings) as first, node(database_url, settings) as second:
        await until_owned(sql, (first, 50), (second, 50))
        server.kill()
        for process in (first, second):
            await process.event("CoordinatorLost", coordinator=server.kind)
        # By the leases in PostgreSQL, as without a coordinator.
        first.kill_tree()
        await until_owned(sql, (second, 100))
        async with node(database_url, settings) as third:
            await third.event("ShardsChanged", count=50)
            await asyncio.to_thread(server.wipe)
            await until(lambda: has_joined(second, 2))
            await until(lambda: has_joined(third, 1))
            third.kill_tree()
            await second.event("MembersGone", count=1)
            await until_owned(sql, (second, 100))


async def has_joined(process: FoliotProcess, times: int) -> bool:
    return [event["event"] for event in process.events].count("CoordinatorJoined") >= times


@pytest.mark.slow
async def test_no_tick_is_lost_or_doubled_whatever_happens_to_nodes_and_service(
    server: CoordinatorServer, database_url: str, store: Store, sql: Any
) -> None:
    settings = server.settings()
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(cuttable(server.port))
        behind = settings | {"coordination_url": server.url_at(proxy.port)}
        nodes = [await stack.enter_async_context(node(database_url, one)) for one in (settings, settings, behind)]
        jobs = [
            await make_job(store, every="1s", overlap="allow_all", catchup="all", catchup_max=10_000)
            for _ in range(100)
        ]
        await until_shared(sql, nodes)
        await until(lambda: sql.fetchval("select exists (select from foliot.runs)"))
        proxy.cut()
        await nodes[0].event("MembersGone", count=1)
        nodes[0].kill_tree()
        nodes[0] = await stack.enter_async_context(node(database_url, settings))
        await nodes[0].event("CoordinatorJoined")
        proxy.heal()
        await until(lambda: has_joined(nodes[2], 2))
        nodes[1].signal(signal.SIGSTOP)
        await nodes[0].event("MembersGone", count=1)
        nodes[1].signal(signal.SIGCONT)
        await asyncio.to_thread(server.wipe)
        for process in nodes:
            await process.event("CoordinatorLost")
        await until(lambda: has_joined(nodes[0], 2))
        server.freeze()
        await asyncio.sleep(4)
        server.thaw()
        server.kill()
        nodes[2].kill_tree()
        now = await sql.fetchval("select extract(epoch from clock_timestamp())::bigint")
        await until(lambda: caught_up(sql, now))
        await asyncio.to_thread(server.start)
        rows = await sql.fetch(TICKS)
    seen: dict[Any, list[int]] = {job.id: [] for job in jobs}
    for job_id, first, last in rows:
        seen[job_id].extend(range(first, last + 1))
    for job in jobs:
        assert job.next_at is not None
        start = int(job.next_at.timestamp())
        got = sorted(tick for tick in seen[job.id] if tick <= now)
        assert got == list(range(start, now + 1)), f"job {job.id}: doubled or lost ticks"


async def until_shared(sql: Any, nodes: list[FoliotProcess]) -> None:
    """Waits until each node has about a third."""

    async def look() -> bool:
        found = await owned(sql)
        counts = [found.get(str(one.pid), 0) for one in nodes]
        return sum(counts) == 100 and min(counts) >= 32

    await until(look)
