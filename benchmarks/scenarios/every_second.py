"""Time: jobs due every second, bursts beside a million that are not due, what a tick costs, and delayed jobs due at once.

A run counts as ready when the transaction that made it has committed, which the server is asked to remember (`track_commit_timestamp`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import asyncpg
import psutil

INSERT_JOBS = """
insert into foliot.jobs (id, created_at, updated_at, next_at, fire_at, shard, priority, name, task, queue, schedule)
select gen_random_uuid(), now(), now(), due, due, n % 100, 0, $1 || n, 'noop', 'bench', $2::jsonb
from generate_series(1, $3::bigint) n, (select date_trunc('second', now()) + make_interval(secs => $4::float8) as due) as first
"""
INSERT_DELAYED = """
insert into foliot.runs (id, created_at, due_at, rank, state, queue, task)
select gen_random_uuid(), now(), due, extract(epoch from due) * 1000000, 'scheduled', 'bench', 'noop'
from generate_series(1, $1::bigint) n, (select date_trunc('second', now()) + make_interval(secs => $2::float8) as due) as first
"""
EVERY_SECOND = '{"cron": "* * * * * *", "overlap": "allow_all"}'
EVERY_HOUR = '{"cron": "0 * * * *", "overlap": "allow_all"}'
TOMORROW = 86_400.0
LAG = """
select count(*), count(distinct (job_id, tick_at)),
    percentile_cont(array[0.5, 0.99, 0.999, 1.0]) within group (order by lag), avg((lag <= 100)::int)::float8
from (
    select job_id, tick_at, extract(epoch from pg_xact_commit_timestamp(xmin) - tick_at)::float8 * 1000 as lag
    from foliot.runs where job_id is not null and tick_at > $1 and tick_at <= $2
) as fires
"""
LAST_READY = """
select max(extract(epoch from pg_xact_commit_timestamp(xmin) - coalesce(tick_at, due_at)))::float8
from foliot.runs where state = 'ready'
"""
ROWS_READ = (
    "select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::float8 from pg_stat_user_tables where schemaname = 'foliot'"
)
STATEMENTS = "select xact_commit::float8 from pg_stat_database where datname = current_database()"
BACKENDS = "select array_agg(pid) from pg_stat_activity where application_name like '%scheduler%'"


async def every_second(url: str, *, jobs: int, seconds: int) -> dict[str, float]:
    """The lag of fires in milliseconds, and the share of ticks that fired, after two seconds of warming up."""
    async with session_to(url) as session:
        await session.execute(INSERT_JOBS, "every", EVERY_SECOND, jobs, 2.0)
        await session.execute("vacuum analyze foliot.jobs")
        async with scheduler_on(url):
            begin = await session.fetchval("select date_trunc('second', now()) + interval '4 seconds'")
            end = await session.fetchval("select $1::timestamptz + make_interval(secs => $2)", begin, float(seconds))
            await wait_until(session, end)
            count, distinct, (p50, p99, p999, worst), within = await session.fetchrow(LAG, begin, end)
    if count != distinct:
        raise RuntimeError(f"{count - distinct} ticks fired twice")
    return {
        "fired_share": count / (jobs * seconds), "lag_p50_ms": p50, "lag_p99_ms": p99, "lag_p999_ms": p999, "lag_max_ms": worst,
        "within_100_ms": within,
    }  # fmt: skip


async def burst(url: str, *, due: int, stored: int) -> dict[str, float]:
    """Seconds from the instant at which `due` jobs are due to the last of their runs being ready, with `stored` others in the table."""
    async with session_to(url) as session:
        await session.execute(INSERT_JOBS, "far", EVERY_HOUR, stored, TOMORROW)
        await session.execute("vacuum analyze foliot.jobs")
        async with scheduler_on(url):
            await session.execute(INSERT_JOBS, "due", EVERY_HOUR, due, 6.0)
            return {"last_ready_seconds": await last_ready(session, due)}


async def delayed(url: str, *, due: int, stored: int) -> dict[str, float]:
    """The same for delayed one-off jobs."""
    async with session_to(url) as session:
        await session.execute(INSERT_DELAYED, stored, TOMORROW)
        await session.execute("vacuum analyze foliot.runs")
        async with scheduler_on(url):
            await session.execute(INSERT_DELAYED, due, 6.0)
            return {"last_ready_seconds": await last_ready(session, due)}


async def tick_cost(url: str, *, jobs: int, seconds: int, stored: int) -> dict[str, float]:
    """What one tick costs while `jobs` are due every second: transactions, rows read, and CPU of the node and of its server processes."""
    async with session_to(url) as session:
        await session.execute(INSERT_JOBS, "far", EVERY_HOUR, stored, TOMORROW)
        await session.execute(INSERT_JOBS, "every", EVERY_SECOND, jobs, 2.0)
        await session.execute("vacuum analyze foliot.jobs")
        async with scheduler_on(url) as scheduler:
            await session.fetchval("select pg_sleep(5)")
            before = await spent(session, scheduler)
            await session.fetchval("select pg_sleep($1::float8)", float(seconds))
            after = await spent(session, scheduler)
    fired = after.pop("fired") - before.pop("fired")
    return {name: (after[name] - before[name]) / fired for name in after}


async def spent(session: Any, scheduler: asyncio.subprocess.Process) -> dict[str, float]:
    await session.execute("select pg_stat_clear_snapshot()")
    processes = [psutil.Process(pid) for pid in [scheduler.pid, *await session.fetchval(BACKENDS)]]
    used = [process.cpu_times() for process in processes]
    return {
        "fired": float(await session.fetchval("select count(*) from foliot.runs")),
        "transactions": await session.fetchval(STATEMENTS),
        "rows_read": await session.fetchval(ROWS_READ),
        "cpu_us": sum(times.user + times.system for times in used) * 1e6,
    }


async def last_ready(session: Any, due: int) -> float:
    while await session.fetchval("select count(*) from foliot.runs where state = 'ready'") < due:  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    took: float = await session.fetchval(LAST_READY)
    return took


async def wait_until(session: Any, moment: datetime) -> None:
    """A second more, for the last fires to commit."""
    await session.fetchval("select pg_sleep(extract(epoch from $1::timestamptz - clock_timestamp()) + 1)", moment)


@asynccontextmanager
async def session_to(url: str) -> AsyncIterator[Any]:
    """Tables are empty before and after."""
    session = await asyncpg.connect(url, command_timeout=600)
    try:
        await session.execute("truncate foliot.jobs, foliot.job_dependencies, foliot.ticks, foliot.runs")
        yield session
        await session.execute("truncate foliot.jobs, foliot.job_dependencies, foliot.ticks, foliot.runs")
    finally:
        await session.close()


@asynccontextmanager
async def scheduler_on(url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    environment = os.environ | {"FOLIOT_DATABASE_URL": url, "FOLIOT_LOG_LEVEL": "warning"}
    scheduler = await asyncio.create_subprocess_exec(sys.executable, "-m", "foliot", "scheduler", env=environment, stdin=DEVNULL)
    try:
        yield scheduler
    finally:
        scheduler.terminate()
        await scheduler.wait()
