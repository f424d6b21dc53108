"""Does anything slow down as tables grow? Throughput and latency beside queued jobs, history and schedules, by those with empty tables.

Full and empty tables are those of two databases of one server, measured in turns.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from benchmarks.bench import Bench, in_turns, twin
from benchmarks.draining import Drained, compared, drain, drain_in_turns
from benchmarks.environment import syncs
from benchmarks.processes import scheduler
from benchmarks.report import Goal, Result, Row, at_least, at_most, percentile
from benchmarks.scenarios.latency import seconds_of, starts
from benchmarks.schedules import EVERY_HOUR, TOMORROW, insert_jobs
from foliot.store.partitions import partition_name

NAME = "growth"
TITLE = "throughput and latency beside full tables, by those with empty ones"
# Gigabytes at once keep a disk busy for longer than PostgreSQL waits for it, and every commit with it.
REST_SECONDS, RESTED = 90, 0.8
LOOKS = 2
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
    waits: list[float]

    def wait_ms(self, share: float) -> float:
        return percentile(self.waits, share) * 1e3


async def measure(bench: Bench) -> Result:
    queued = bench.size(200_000, full=1_000_000, tiny=1000)
    history = bench.size(1_000_000, full=10_000_000, tiny=1000)
    schedules = bench.size(100_000, full=1_000_000, tiny=1000)
    usual = syncs(bench.directory)
    rows, goals = list[Row](), list[Goal]()
    async with twin(bench) as empty:
        for name, fill, size in (
            (f"{queued:,} queued jobs", _queued, queued),
            (f"{history:,} rows of history", _history, history),
            (f"{schedules:,} schedules", _schedules, schedules),
        ):
            await bench.empty()
            await fill(bench, size)
            await _settle(bench, usual)
            full, bare = await _measured(bench, empty)
            figures = _compared(full, bare)
            rows.append(Row(name, figures))
            goals.append(at_least(f"throughput beside {name}, by empty", figures["ratio"], 0.9))
            goals.append(at_most(f"latency beside {name}, by empty", figures["p50_ratio"], 1.2))
        await bench.empty()
    return Result(
        rows,
        goals,
        {"jobs": _jobs(bench), "drains": _drains(bench)},
        ["`empty`: the same with empty tables, measured in turns; cpu ratio: of the CPU time of a job, PostgreSQL's and the worker's"],
    )


def _compared(full: Found, empty: Found) -> dict[str, float]:
    return {
        **compared(full.drained, empty.drained),
        "p50_ms": full.wait_ms(0.5),
        "p95_ms": full.wait_ms(0.95),
        "empty_p50_ms": empty.wait_ms(0.5),
        "p50_ratio": full.wait_ms(0.5) / empty.wait_ms(0.5),
    }


async def _settle(bench: Bench, usual_syncs: float) -> None:
    """What was filled is on disk before anything is measured, and the disk has got over it."""
    await bench.checkpoint()
    for _ in range(REST_SECONDS):
        if syncs(bench.directory) >= RESTED * usual_syncs:
            return
        await asyncio.sleep(1)


async def _measured(full: Bench, empty: Bench) -> tuple[Found, Found]:
    waits: dict[str, list[float]] = {full.url: [], empty.url: []}
    wanted = full.size(80, full=400, tiny=5) // LOOKS or 1

    async def nothing_to_wait_for() -> None: ...

    async with scheduler(full), scheduler(empty):
        # Nobody works on the queue that is full while another one is looked at for latency.
        for bench in in_turns(full, empty, LOOKS):
            waits[bench.url] += seconds_of((await starts(bench, wanted, queue="quick"))[0])
        drained, bare = await drain_in_turns(
            full, empty, _drains(full), lambda bench: drain(bench, _jobs(bench), beside=nothing_to_wait_for)
        )
    return Found(drained, waits[full.url]), Found(bare, waits[empty.url])


def _drains(bench: Bench) -> int:
    return bench.size(2, full=4, tiny=1)


def _jobs(bench: Bench) -> int:
    return bench.size(30_000, full=100_000, tiny=200)


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
