"""Writes recurring and delayed jobs straight into the tables, and reads when their runs became ready.

A run is ready when the transaction that created it has committed; `track_commit_timestamp` records that.
"""

from __future__ import annotations

import asyncio

from benchmarks.bench import Bench

INSERT_JOBS = """
insert into foliot.jobs (id, created_at, updated_at, next_at, fire_at, shard, priority, name, task, queue, schedule)
select gen_random_uuid(), now(), now(), due, due, n % 100, 0, $1 || n, 'noop', 'bench', $2::jsonb
from generate_series(1, $3::bigint) n, (select date_trunc('second', now()) + make_interval(secs => $4::float8) as due)
    as first
"""
INSERT_DELAYED = """
insert into foliot.runs (id, created_at, due_at, rank, state, queue, task)
select gen_random_uuid(), now(), due, extract(epoch from due) * 1000000, 'scheduled', 'bench', 'noop'
from generate_series(1, $1::bigint) n, (select date_trunc('second', now()) + make_interval(secs => $2::float8) as due)
    as first
"""
LAST_READY = """
select max(extract(epoch from pg_xact_commit_timestamp(xmin) - coalesce(tick_at, due_at)))::float8
from foliot.runs where state = 'ready'
"""
EVERY_SECOND = '{"cron": "* * * * * *", "overlap": "allow_all"}'
EVERY_HOUR = '{"cron": "0 * * * *", "overlap": "allow_all"}'
TOMORROW = 86_400.0


async def insert_jobs(bench: Bench, prefix: str, schedule: str, jobs: int, first_in_seconds: float) -> None:
    await bench.session.execute(INSERT_JOBS, prefix, schedule, jobs, first_in_seconds)


async def insert_delayed(bench: Bench, jobs: int, due_in_seconds: float) -> None:
    await bench.session.execute(INSERT_DELAYED, jobs, due_in_seconds)


async def last_ready(bench: Bench, due: int) -> float:
    """Seconds from the due instant until the last run is ready."""
    while await bench.session.fetchval("select count(*) from foliot.runs where state = 'ready'") < due:  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    took: float = await bench.session.fetchval(LAST_READY)
    return took
