"""Does anything slow down as tables grow? Measures throughput and latency next to queued jobs, future jobs, history and
schedules, relative to empty tables.

The full and the empty tables are in two databases of one server, and are measured in turns.
"""

from __future__ import annotations

from benchmarks.bench import Bench, in_turns, twin
from benchmarks.draining import IN_TURNS, compared, drain_in_turns, warm_workers
from benchmarks.processes import scheduler
from benchmarks.report import Goal, Result, Row, at_least, at_most, spread_ms
from benchmarks.scenarios.latency import seconds_of, starts
from benchmarks.schedules import EVERY_HOUR, TOMORROW, insert_jobs
from foliot.store.partitions import partition_name

NAME = "growth"
TITLE = "throughput and latency with full tables, relative to empty ones"
LOOKS = 2
# Increasing ids fill the indexes from one end, as Foliot's own ids do.
QUEUED = """
insert into foliot.runs (id, created_at, due_at, rank, state, queue, task, payload)
select lpad(to_hex(n), 32, '0')::uuid, now(), now(), extract(epoch from now() + interval '1 hour') * 1000000 + n,
    'ready', 'default', 'one',
    '{"item": 1}'
from generate_series(1, $1::bigint) n
"""
DELAYED = """
insert into foliot.runs (id, created_at, due_at, expires_at, rank, state, queue, task)
select lpad(to_hex(n), 32, '0')::uuid, now(), due, due + interval '1 hour', extract(epoch from due) * 1000000 + n,
    'scheduled',
    'default', 'one'
from generate_series(1, $1::bigint) n, (select now() + interval '1 day' as due) as tomorrow
"""
HISTORY = """
insert into foliot.{name} (id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state,
    queue, task, payload)
select lpad(to_hex(n), 32, '0')::uuid, at, at, at, at, 1, 1, 0, 0, 'succeeded', 'default', 'old',
    '{{"to": "someone@example.com"}}'
from (
    select n, date_trunc('day', now()) + (now() - date_trunc('day', now())) * (n::float8 / $1) as at
        from generate_series(1, $1::bigint) n
) as finished
"""


async def measure(bench: Bench) -> Result:
    queued = bench.size(200_000, full=1_000_000, tiny=1000)
    history = bench.size(1_000_000, full=10_000_000, tiny=1000)
    schedules = bench.size(100_000, full=1_000_000, tiny=1000)
    delayed = bench.size(200_000, full=1_000_000, tiny=1000)
    rows, goals = list[Row](), list[Goal]()
    async with twin(bench) as empty:
        for name, fill, size in (
            (f"{queued:,} queued jobs", _queued, queued),
            (f"{history:,} rows of history", _history, history),
            (f"{schedules:,} schedules", _schedules, schedules),
            (f"{delayed:,} jobs due tomorrow", _delayed, delayed),
        ):
            await bench.empty()
            await fill(bench, size)
            await bench.settle()
            figures = await _compared(bench, empty)
            rows.append(Row(name, figures))
            goals.append(at_least(f"throughput with {name}, relative to empty", figures["ratio"], 0.9))
            goals.append(at_most(f"latency with {name}, relative to empty", figures["p50_ratio"], 1.2))
        await bench.empty()
    return Result(rows, goals, {"jobs": _jobs(bench), "pairs": _pairs(bench)}, [IN_TURNS])


async def _compared(full: Bench, empty: Bench) -> dict[str, float]:
    waits: dict[str, list[float]] = {full.url: [], empty.url: []}
    wanted = full.size(80, full=400, tiny=5) // LOOKS or 1
    # Workers are present from the start. Otherwise the gatekeeper would set the queued jobs aside, and bring them back
    # during the measurement.
    async with warm_workers(full, empty) as pids, scheduler(full), scheduler(empty):
        # Nobody runs the jobs of the full queue while the latency of another queue is measured.
        for bench in in_turns(full, empty, LOOKS):
            waits[bench.url] += seconds_of((await starts(bench, wanted, queue="quick"))[0])
        pairs = await drain_in_turns(full, empty, pids, times=_pairs(full), jobs=_jobs(full))
    full_ms, empty_ms = spread_ms(waits[full.url]), spread_ms(waits[empty.url])
    return {
        **compared(pairs),
        "p50_ms": full_ms["p50_ms"],
        "p95_ms": full_ms["p95_ms"],
        "empty_p50_ms": empty_ms["p50_ms"],
        "p50_ratio": full_ms["p50_ms"] / empty_ms["p50_ms"],
    }


def _pairs(bench: Bench) -> int:
    return bench.size(6, full=12, tiny=1)


def _jobs(bench: Bench) -> int:
    return bench.size(15_000, full=50_000, tiny=200)


async def _queued(bench: Bench, size: int) -> None:
    await bench.session.execute(QUEUED, size)
    await bench.session.execute("vacuum analyze foliot.runs")


async def _history(bench: Bench, size: int) -> None:
    """Fills today's partition, the one that is written to. Filling it apart and building its indexes one after the
    other is faster."""
    today = await bench.session.fetchval("select (now() at time zone 'UTC')::date")
    name = partition_name("history", today)
    await bench.session.execute(f"drop table foliot.{name}")
    await bench.session.execute(
        f"create table foliot.{name} (like foliot.history including defaults including constraints)"
    )
    await bench.session.execute(HISTORY.format(name=name), size)
    await bench.session.execute("set maintenance_work_mem = '512MB'")
    await bench.session.execute(
        f"alter table foliot.history attach partition foliot.{name} for values from ('{today} 00:00:00+00') to "
        f"('{today} 24:00:00+00')"
    )
    await bench.session.execute(f"vacuum analyze foliot.{name}")


async def _schedules(bench: Bench, size: int) -> None:
    await insert_jobs(bench, "far", EVERY_HOUR, size, TOMORROW)
    await bench.session.execute("vacuum analyze foliot.jobs")


async def _delayed(bench: Bench, size: int) -> None:
    await bench.session.execute(DELAYED, size)
    await bench.session.execute("vacuum analyze foliot.runs")
