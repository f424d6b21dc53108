"""The cost of one tick, and whether it grows when a hundred times as many jobs are stored."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bench import Bench, in_turns, twin
from benchmarks.cpu import tree_seconds
from benchmarks.processes import scheduler
from benchmarks.report import Result, Row, at_most
from benchmarks.schedules import EVERY_HOUR, EVERY_SECOND, TOMORROW, insert_jobs

NAME = "tick_cost"
TITLE = "the cost of one tick, with few and with many jobs stored"
ROWS_READ = """
select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::float8
from pg_stat_user_tables where schemaname = 'foliot'
"""
TRANSACTIONS = "select xact_commit::float8 from pg_stat_database where datname = current_database()"


async def measure(bench: Bench) -> Result:
    jobs, stored = bench.size(1000, full=1000, tiny=20), bench.size(100_000, full=1_000_000, tiny=1000)
    seconds, times = bench.size(4, full=20, tiny=2), bench.size(2, full=3, tiny=1)
    async with twin(bench) as other:
        for one, number in ((bench, stored), (other, stored // 100)):
            await insert_jobs(one, "far", EVERY_HOUR, number, TOMORROW)
            await insert_jobs(one, "every", EVERY_SECOND, jobs, 2.0)
            await one.session.execute("vacuum analyze foliot.jobs")
            # Autovacuum could run while one of the two is measured, and not during the other.
            await one.session.execute("alter table foliot.jobs set (autovacuum_enabled = off)")
            await one.session.execute("alter table foliot.runs set (autovacuum_enabled = off)")
        await bench.settle()
        found: dict[str, list[dict[str, float]]] = {bench.url: [], other.url: []}
        for one in in_turns(bench, other, times):
            found[one.url].append(await _ticks(one, seconds))
        many, few = mean(found[bench.url]), mean(found[other.url])
        await bench.session.execute("alter table foliot.jobs reset (autovacuum_enabled)")
        await bench.session.execute("alter table foliot.runs reset (autovacuum_enabled)")
    ratio = {name: many[name] / few[name] for name in few}
    return Result(
        [Row(f"{stored // 100:,} stored", few), Row(f"{stored:,} stored", many), Row("ratio", ratio)],
        [at_most("CPU of a tick with a hundred times the jobs", ratio["all_us"], 1.2)],
        {"due_every_second": jobs, "seconds": seconds, "times": times},
        ["measured in turns in two databases, without autovacuum"],
    )


def mean(found: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: sum(one[name] for one in found) / len(found) for name in found[0]}


async def _ticks(bench: Bench, seconds: int) -> dict[str, float]:
    async with scheduler(bench) as node:
        # The node handles the missed ticks first.
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
