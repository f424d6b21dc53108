"""No-op Python functions, queued first: how many one and two worker processes run in a second, by kind of function."""

from __future__ import annotations

from benchmarks import raw_sql
from benchmarks.bench import Bench
from benchmarks.draining import SLOTS, Drained, drain, mean
from benchmarks.report import Result, Row, at_least, at_most

NAME = "drain"
TITLE = "no-op functions, queued first and then run"
PROCESS_SLOTS = 4
"""Each is a Python process, whose start is part of what is measured."""


async def measure(bench: Bench) -> Result:
    jobs = bench.size(80_000, full=200_000, tiny=500)
    few, fewest = bench.size(10_000, full=50_000, tiny=100), bench.size(4000, full=20_000, tiny=20)
    before = await raw_sql.limit(bench, jobs)
    # Each twice, in an order that favours neither if the machine becomes slower or faster in the meantime.
    found = [await drain(bench, jobs, processes=processes) for processes in (1, 2, 2, 1)]
    one, two = mean([found[0], found[3]]), mean(found[1:3])
    between = await raw_sql.limit(bench, jobs)
    plain = await drain(bench, few, task="plain")
    plain_two = await drain(bench, few, task="plain", processes=2)
    process = await drain(bench, fewest, task="process", slots=PROCESS_SLOTS)
    after = await raw_sql.limit(bench, jobs)
    raw = raw_sql.mean(before, between)
    later = raw_sql.mean(between, after)

    def row(name: str, found: Drained, limit: raw_sql.Limit) -> Row:
        ratio = found.per_second / limit.drain_per_second
        return Row(
            name, {"per_second": found.per_second, "raw_sql": limit.drain_per_second, "ratio": ratio, **found.cpu}
        )

    return Result(
        [
            row("async, 1 process", one, raw),
            row("async, 2 processes", two, raw),
            row("plain (threads), 1 process", plain, later),
            row("plain (threads), 2 processes", plain_two, later),
            row(f"in processes, {PROCESS_SLOTS} slots, 1 worker", process, later),
            Row(
                "raw SQL",
                {"per_second": raw.drain_per_second, "postgres_us": raw.postgres_us, "worker_us": raw.client_us},
            ),
        ],
        [
            at_least("async, 1 process: share of raw SQL", one.per_second / raw.drain_per_second, 0.7),
            at_least("async: 2 processes by 1", two.per_second / one.per_second, 1.0),
            at_most("async, 1 process: CPU of PostgreSQL and worker, us a job", one.all_us, 70),
            at_most("async, 1 process: the worker's own CPU, us a job", one.cpu["worker_us"], 30),
        ],
        {"jobs": jobs, "plain": few, "in_processes": fewest, "slots": SLOTS},
    )
