"""Nodes that disagree about the rules of a time zone: each local time still comes exactly once."""

from __future__ import annotations

import asyncio
import random
import signal
import struct
import time
from collections import Counter
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from foliot.store.store import Store
from tests.support.jobs import make_job
from tests.support.processes import FoliotProcess
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

JOBS = 40
SECONDS = 25
APART = 6
"""Seconds by which the two rules differ: less than half of what lies between two ticks."""
BOTH_FIRED = "select count(distinct extract(epoch from tick_at)::bigint % 20) = 2 from foliot.runs"


def zone_file(directory: Path, name: str, utc_offset: int) -> Path:
    """A zone that has always had this offset, in the format of tzfile(5)."""
    path = directory / name
    path.parent.mkdir(parents=True)
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    path.write_bytes(b"TZif" + bytes(16) + counts + struct.pack(">lBB", utc_offset, 0, 0) + b"XXX\0")
    return directory


@pytest.mark.slow
async def test_nodes_that_disagree_about_a_zone_fire_each_local_time_once(
    database_url: str, store: Store, sql: Any, tmp_path: Path
) -> None:
    around = {"FOLIOT_DATABASE_URL": database_url}
    rules = [
        around | {"PYTHONTZPATH": str(zone_file(tmp_path / str(offset), "Africa/Lagos", 3600 + offset))}
        for offset in (0, APART)
    ]
    now = datetime.now(UTC) + timedelta(hours=1)
    # Fixed hours, so the schedule follows local time. Uses the next hour if this one is nearly over.
    hours = f"{now.hour},{(now.hour + 1) % 24}"
    chance = random.Random(3)
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(FoliotProcess("scheduler", environment=rule)) for rule in rules]
        for node in nodes:
            await node.event("ShardsChanged", count=50)
        jobs = [
            await make_job(
                store, cron=f"0,20,40 * {hours} * * *", timezone="Africa/Lagos", overlap="allow_all", catchup="all"
            )
            for _ in range(JOBS)
        ]
        start = await sql.fetchval("select clock_timestamp()")
        await until(lambda: sql.fetchval(BOTH_FIRED))
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            await asyncio.sleep(chance.uniform(3, 6))
            victim = chance.randrange(2)
            nodes[victim].signal(signal.SIGTERM)
            await nodes[victim].wait()
            await asyncio.sleep(chance.uniform(0, 2))
            nodes[victim] = await stack.enter_async_context(FoliotProcess("scheduler", environment=rules[victim]))
        now = await sql.fetchval("select clock_timestamp()")
        await until(lambda: sql.fetchval("select min(fire_at) > $1 from foliot.jobs", now))
        ticks = await sql.fetch("select job_id, tick_at from foliot.runs")
    assert await sql.fetchval("select count(*) from foliot.ticks") == 0
    # In the local time of one node, ticks are at :00, :20 or :40; for the other, APART seconds earlier. Rounded up they
    # are the same.
    seen = Counter((job_id, -(-int(tick.timestamp()) // 20)) for job_id, tick in ticks)
    assert set(seen.values()) == {1}
    first, last = int(start.timestamp() + 2 * APART) // 20 + 1, int(now.timestamp() - APART) // 20
    for job in jobs:
        assert [seen[job.id, wall] for wall in range(first, last + 1)] == [1] * (last + 1 - first)
