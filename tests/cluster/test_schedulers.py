"""Many scheduler nodes are killed and frozen while they fire: every tick exists exactly once, as a run or with a
reason."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from contextlib import AsyncExitStack
from typing import Any

import pytest

from foliot.store.store import Store
from tests.support.jobs import make_job
from tests.support.processes import FoliotProcess
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

NODES = 4
JOBS = 200
SECONDS = int(os.environ.get("SCHEDULER_CHAOS_SECONDS", "25"))
TICKS = """
select job_id, extract(epoch from tick_at)::bigint, extract(epoch from tick_at)::bigint from foliot.runs
    where job_id is not null
union all
select job_id, extract(epoch from tick_at)::bigint, extract(epoch from coalesce(until_at, tick_at))::bigint
    from foliot.ticks
"""


@pytest.mark.slow
async def test_nodes_killed_and_frozen_during_firing_lose_and_duplicate_nothing(
    database_url: str, store: Store, sql: Any
) -> None:
    around = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_LOG_LEVEL": "warning"}
    chance = random.Random(7)
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(FoliotProcess("scheduler", environment=around)) for _ in range(NODES)]
        jobs = [
            await make_job(store, every="1s", overlap="allow_all", catchup="all", catchup_max=10_000)
            for _ in range(JOBS)
        ]
        await until(lambda: sql.fetchval("select exists (select from foliot.runs)"))
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            await asyncio.sleep(chance.uniform(1, 3))
            victim = chance.randrange(NODES)
            if chance.random() < 0.5:
                nodes[victim].kill_tree()
                nodes[victim] = await stack.enter_async_context(FoliotProcess("scheduler", environment=around))
            else:
                nodes[victim].signal(signal.SIGSTOP)
                asyncio.get_running_loop().call_later(chance.uniform(1, 14), nodes[victim].signal, signal.SIGCONT)
        for node in nodes:
            node.signal(signal.SIGCONT)
        now = await sql.fetchval("select extract(epoch from clock_timestamp())::bigint")
        await until(lambda: caught_up(sql, now))
        rows = await sql.fetch(TICKS)
    seen: dict[Any, list[int]] = {job.id: [] for job in jobs}
    for job_id, first, last in rows:
        seen[job_id].extend(range(first, last + 1))
    for job in jobs:
        assert job.next_at is not None
        start = int(job.next_at.timestamp())
        got = sorted(tick for tick in seen[job.id] if tick <= now)
        assert got == list(range(start, now + 1)), f"job {job.id}: doubled or lost ticks"


async def caught_up(sql: Any, now: int) -> bool:
    return bool(await sql.fetchval("select min(next_at) > to_timestamp($1::bigint) from foliot.jobs", now))


async def test_a_clean_stop_hands_over_at_once(database_url: str) -> None:
    # Renewals are too far apart to explain it.
    around = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_SHARD_TTL_SECONDS": "45", "FOLIOT_SHARD_RENEW_SECONDS": "15"}
    async with FoliotProcess("scheduler", environment=around) as first:
        await first.event("ShardsChanged", count=100)
        async with FoliotProcess("scheduler", environment=around) as second:
            await second.event("ProcessStarted")
            await first.event("ShardsChanged", count=50)
            await second.event("ShardsChanged", count=50)
            first.signal(signal.SIGTERM)
            began = time.monotonic()
            await second.event("ShardsChanged", count=100)
            # A second on a quiet machine. Without the handover it would be up to fifteen for its own renewal, plus the
            # lease of the other node.
            assert time.monotonic() - began < 10
            assert await first.wait() == 0
