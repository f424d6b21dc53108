"""Does anything slow down as tables grow? Throughput and latency beside queued jobs, history and schedules, by those with empty tables."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from benchmarks.bench import Bench
from benchmarks.draining import Drained, drain, mean
from benchmarks.environment import syncs
from benchmarks.processes import scheduler
from benchmarks.report import Figure, Result, Row, at_least, at_most, percentile
from benchmarks.scenarios.latency import starts
from benchmarks.schedules import EVERY_HOUR, TOMORROW, insert_jobs
from foliot.store.partitions import partition_name

NAME = "growth"
TITLE = "throughput and latency beside full tables, by those with empty ones"
# Gigabytes at once keep a disk busy for longer than PostgreSQL waits for it, and every commit with it.
REST_SECONDS, RESTED = 90, 0.8
DRAINS = 3
# Ids that grow, so that indexes are filled from one end, as Foliot's own ids fill them.
QUEUED = """
insert into foliot.runs (id, created_at, due_at, rank, state, queue, task, payload)
select lpad(to_hex(n), 32, '0')::uuid, now(), now(), extract(epoch from now() + interval '1 hour') * 1000000 + n, 'ready', 'default', 'one',
    '{"item": 1}'
from generate_series(1, $1::bigint) n
"""
HISTORY = """
insert into foliot.{name} (id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task, payload)
select lpad(to_hex(n), 32, '0')::uuid, at, at, at, at, 1, 1, 0, 0, 'succeeded', 'default', 'old', '{{"to": "someone@example.com"}}'
from (
    select n, date_trunc('day', now()) + (now() - date_trunc('day', now())) * (n::float8 / $1) as at from generate_series(1, $1::bigint) n
) as finished
"""


@dataclass(frozen=True, slots=True)
class Found:
    drained: Drained
    p50_ms: float
    p95_ms: float


async def measure(bench: Bench) -> Result:
    queued = bench.size(200_000, full=1_000_000, tiny=1000)
    history = bench.size(1_000_000, full=10_000_000, tiny=1000)
    schedules = bench.size(100_000, full=1_000_000, tiny=1000)
    usual = syncs(bench.directory)
    before = await _beside(bench, _nothing)
    full = {
        f"{queued:,} queued jobs": await _beside(bench, _queued, queued, usual),
        f"{history:,} rows of history": await _beside(bench, _history, history, usual),
        f"{schedules:,} schedules": await _beside(bench, _schedules, schedules, usual),
    }
    after = await _beside(bench, _nothing)
    empty = Found(mean([before.drained, after.drained]), (before.p50_ms + after.p50_ms) / 2, (before.p95_ms + after.p95_ms) / 2)
    rows, goals = [_row("empty tables", empty, empty)], []
    for name, found in full.items():
        rows.append(_row(name, found, empty))
        goals.append(at_least(f"throughput beside {name}, by empty", rows[-1].figures["ratio"], 0.9))
        goals.append(at_most(f"latency beside {name}, by empty", rows[-1].figures["p50_ratio"], 1.2))
    return Result(
        rows,
        goals,
        notes=["empty tables were measured before and after; cpu ratio: of the CPU time of a job, PostgreSQL's and the worker's"],
    )


def _row(name: str, found: Found, empty: Found) -> Row:
    figures: dict[str, Figure] = {
        "per_second": found.drained.per_second,
        "ratio": found.drained.per_second / empty.drained.per_second,
        "cpu_ratio": found.drained.all_us / empty.drained.all_us,
        **found.drained.cpu,
        "p50_ms": found.p50_ms,
        "p95_ms": found.p95_ms,
        "p50_ratio": found.p50_ms / empty.p50_ms,
    }
    return Row(name, figures)


async def _beside(bench: Bench, fill: Callable[[Bench, int], Awaitable[None]], size: int = 0, usual_syncs: float = 0) -> Found:
    jobs, starts_wanted = bench.size(60_000, full=100_000, tiny=200), bench.size(80, full=400, tiny=5)
    await bench.empty()
    await fill(bench, size)
    # What was filled is on disk before anything is measured, and the disk has got over it.
    await bench.checkpoint()
    for _ in range(REST_SECONDS):
        if syncs(bench.directory) >= RESTED * usual_syncs:
            break
        await asyncio.sleep(1)

    async def nothing_to_wait_for() -> None: ...

    async with scheduler(bench):
        # Nobody works on the queue that is full while another one is looked at for latency.
        waits, _ = await starts(bench, starts_wanted, queue="quick")
        # One alone may meet a moment in which the machine is slow, or PostgreSQL cleans up, which it does every ten seconds.
        drained = mean([await drain(bench, jobs, beside=nothing_to_wait_for) for _ in range(DRAINS)])
    return Found(drained, percentile(waits, 0.5) * 1e3, percentile(waits, 0.95) * 1e3)


async def _nothing(_: Bench, __: int) -> None: ...


async def _queued(bench: Bench, size: int) -> None:
    await bench.session.execute(QUEUED, size)
    await bench.session.execute("vacuum analyze foliot.runs")


async def _history(bench: Bench, size: int) -> None:
    """All in today's part of it, the one that is written to. Filled apart, and indexed as a whole: one index after the other is quicker."""
    today = await bench.session.fetchval("select (now() at time zone 'UTC')::date")
    name = partition_name("history", today)
    await bench.session.execute(f"drop table foliot.{name}")
    await bench.session.execute(f"create table foliot.{name} (like foliot.history including defaults including constraints)")
    await bench.session.execute(HISTORY.format(name=name), size)
    await bench.session.execute("set maintenance_work_mem = '512MB'")
    await bench.session.execute(
        f"alter table foliot.history attach partition foliot.{name} for values from ('{today} 00:00:00+00') to ('{today} 24:00:00+00')"
    )
    await bench.session.execute(f"vacuum analyze foliot.{name}")


async def _schedules(bench: Bench, size: int) -> None:
    await insert_jobs(bench, "far", EVERY_HOUR, size, TOMORROW)
    await bench.session.execute("vacuum analyze foliot.jobs")
