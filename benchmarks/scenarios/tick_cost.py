"""What one tick costs, and whether it costs more when a hundred times as many jobs are stored."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.cpu import tree_seconds
from benchmarks.processes import scheduler
from benchmarks.report import Result, Row, at_most
from benchmarks.schedules import EVERY_HOUR, EVERY_SECOND, TOMORROW, insert_jobs

NAME = "tick_cost"
TITLE = "what one tick of a job costs, with few and with many jobs stored"
ROWS_READ = (
    "select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::float8 from pg_stat_user_tables where schemaname = 'foliot'"
)
TRANSACTIONS = "select xact_commit::float8 from pg_stat_database where datname = current_database()"


async def measure(bench: Bench) -> Result:
    jobs, seconds = bench.size(1000, full=1000, tiny=20), bench.size(4, full=20, tiny=2)
    stored = bench.size(100_000, full=1_000_000, tiny=1000)
    # The few before and after, since the machine may change its pace meanwhile.
    before = await _ticks(bench, jobs, seconds, stored // 100)
    many = await _ticks(bench, jobs, seconds, stored)
    after = await _ticks(bench, jobs, seconds, stored // 100)
    few = {name: (before[name] + after[name]) / 2 for name in before}
    ratio = {name: many[name] / few[name] for name in few}
    return Result(
        [Row(f"{stored // 100:,} stored", few), Row(f"{stored:,} stored", many), Row("ratio", ratio)],
        [at_most("CPU of a tick with a hundred times the jobs", ratio["all_us"], 1.2)],
        {"due_every_second": jobs, "seconds": seconds},
    )


async def _ticks(bench: Bench, jobs: int, seconds: int, stored: int) -> dict[str, float]:
    await bench.empty()
    await insert_jobs(bench, "far", EVERY_HOUR, stored, TOMORROW)
    await insert_jobs(bench, "every", EVERY_SECOND, jobs, 2.0)
    await bench.session.execute("vacuum analyze foliot.jobs")
    async with scheduler(bench) as node:
        await bench.session.fetchval("select pg_sleep(3)")
        before = await _spent(bench, node)
        await bench.session.fetchval("select pg_sleep($1::float8)", float(seconds))
        after = await _spent(bench, node)
    fired = after.pop("fired") - before.pop("fired")
    return {name: (after[name] - before[name]) / fired for name in after}


async def _spent(bench: Bench, node: int) -> dict[str, float]:
    await bench.session.execute("select pg_stat_clear_snapshot()")
    scheduler_us = tree_seconds(node) * 1e6
    postgres_us = tree_seconds(bench.postmaster) * 1e6 if bench.postmaster is not None else 0.0
    return {
        "fired": float(await bench.session.fetchval("select count(*) from foliot.runs")),
        "transactions": await bench.session.fetchval(TRANSACTIONS),
        "rows_read": await bench.session.fetchval(ROWS_READ),
        "postgres_us": postgres_us,
        "scheduler_us": scheduler_us,
        "all_us": postgres_us + scheduler_us,
    }
