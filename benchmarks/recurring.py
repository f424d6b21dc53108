"""Recurring: jobs that are due every second on one scheduler node; and a burst of jobs due in the same second beside many that are not."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL
from typing import Any

import asyncpg

INSERT = """
insert into foliot.jobs (id, created_at, updated_at, next_at, fire_at, shard, priority, name, task, queue, schedule)
select gen_random_uuid(), now(), now(), due, due, n % 100, 0, $1 || n, 'noop', 'bench', $2::jsonb
from generate_series(1, $3::bigint) n, (select date_trunc('second', now()) + make_interval(secs => $4::float8) as due) as first
"""
EVERY_SECOND = '{"cron": "* * * * * *", "overlap": "allow_all"}'
EVERY_HOUR = '{"cron": "0 * * * *", "overlap": "allow_all"}'
# A run is stored when it fires; what is between that and its tick is the lag.
LAG = """
select count(*), count(distinct (job_id, tick_at)),
    percentile_cont(array[0.5, 0.99, 0.999, 1.0]) within group (order by extract(epoch from created_at - tick_at) * 1000)
from foliot.runs where job_id is not null and tick_at > $1 and tick_at <= $2
"""


async def every_second(url: str, *, jobs: int, seconds: int) -> dict[str, float]:
    """The lag of fires in milliseconds, and the share of ticks that fired, after two seconds of warming up."""
    session = await asyncpg.connect(url, command_timeout=300)
    await clear(session)
    await session.execute(INSERT, "every", EVERY_SECOND, jobs, 2.0)
    scheduler = await start_scheduler(url)
    try:
        begin = await session.fetchval("select date_trunc('second', now()) + interval '4 seconds'")
        end = await session.fetchval("select $1::timestamptz + make_interval(secs => $2)", begin, float(seconds))
        await session.fetchval("select pg_sleep(extract(epoch from $1::timestamptz - clock_timestamp()) + 1)", end)
        count, distinct, (p50, p99, p999, worst) = await session.fetchrow(LAG, begin, end)
    finally:
        scheduler.terminate()
        await scheduler.wait()
    await clear(session)
    await session.close()
    if count != distinct:
        raise RuntimeError(f"{count - distinct} ticks fired twice")
    share = count / (jobs * seconds)
    return {"fired_share": share, "lag_p50_ms": p50, "lag_p99_ms": p99, "lag_p999_ms": p999, "lag_max_ms": worst}


async def burst(url: str, *, due: int, stored: int) -> dict[str, float]:
    """Seconds from the instant at which `due` jobs are due to the last of their runs being ready, with `stored` others in the table."""
    session = await asyncpg.connect(url, command_timeout=300)
    await clear(session)
    await session.execute(INSERT, "far", EVERY_HOUR, stored, 86_400.0)
    await session.execute("vacuum analyze foliot.jobs")
    scheduler = await start_scheduler(url)
    try:
        await session.fetchval("select pg_sleep(2)")
        await session.execute(INSERT, "due", EVERY_HOUR, due, 4.0)
        while await session.fetchval("select count(*) from foliot.runs where job_id is not null") < due:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        took: float = await session.fetchval("select extract(epoch from max(created_at - tick_at))::float8 from foliot.runs")
    finally:
        scheduler.terminate()
        await scheduler.wait()
    await clear(session)
    await session.close()
    return {"last_ready_seconds": took}


async def clear(session: Any) -> None:
    await session.execute("truncate foliot.jobs, foliot.ticks, foliot.runs")


async def start_scheduler(url: str) -> asyncio.subprocess.Process:
    environment = os.environ | {"FOLIOT_DATABASE_URL": url, "FOLIOT_LOG_LEVEL": "warning"}
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "foliot", "scheduler", env=environment, stdin=DEVNULL)
