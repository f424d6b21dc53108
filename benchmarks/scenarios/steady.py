"""Submitting and running at the same time: jobs are stored in bulk at full speed while a warm worker already runs
them."""

from __future__ import annotations

import asyncio

from benchmarks import raw_sql
from benchmarks.bench import Bench
from benchmarks.cpu import Meter
from benchmarks.draining import BATCH, SLOTS, SPAN
from benchmarks.processes import workers
from benchmarks.raw_sql import PAYLOAD
from benchmarks.report import Result, Row
from foliot.model.ids import new_id
from foliot.model.run import NewRun

NAME = "steady"
TITLE = "jobs submitted in bulk and run at the same time: jobs a second, from the first submit to the last end"
LIFE = """
select extract(epoch from max(finished_at) - min(created_at))::float8,
    percentile_cont(array[0.5, 0.99]) within group (order by extract(epoch from started_at - created_at))
from foliot.history where task = 'noop'
"""


async def measure(bench: Bench) -> Result:
    jobs = bench.size(40_000, full=200_000, tiny=2000)
    before = await raw_sql.limit(bench, jobs)
    rows = [await _lives(bench, jobs, processes) for processes in (1, 2)]
    raw = raw_sql.mean(before, await raw_sql.limit(bench, jobs)).life_per_second
    shown = [
        Row(row.name, {**row.figures, "raw_sql": raw, "ratio": (row.figures["per_second"] or 0) / raw}) for row in rows
    ]
    notes = ["raw SQL inserts first and drains afterwards; its jobs a second are computed from both"]
    return Result(shown, settings={"jobs": jobs, "slots": SLOTS}, notes=notes)


async def _lives(bench: Bench, jobs: int, processes: int) -> Row:
    await bench.empty()
    await bench.session.execute("vacuum analyze foliot.runs")
    runs = [NewRun(id=new_id(), task="noop", queue="default", payload=PAYLOAD) for _ in range(jobs)]
    async with workers(bench, processes, f"default={SLOTS}") as pids:
        meter = Meter({"postgres": [bench.postmaster], "worker": pids})
        meter.start()
        for start in range(0, jobs, BATCH):
            await bench.store.run_inserts.insert_runs(runs[start : start + BATCH])
            bench.store.hints.send(["default"])
        while await bench.session.fetchval("select exists (select from foliot.runs)"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        meter.stop()
    done, distinct, _ = await bench.session.fetchrow(SPAN, "noop", "default", None)
    if not done == distinct == jobs:
        raise RuntimeError(f"{done} runs succeeded, {distinct} distinct, of {jobs} jobs")
    seconds, (p50, p99) = await bench.session.fetchrow(LIFE)
    figures = {
        "per_second": jobs / seconds,
        "wait_p50_ms": p50 * 1e3,
        "wait_p99_ms": p99 * 1e3,
        **meter.microseconds(jobs),
    }
    return Row(f"{processes} worker process{'es' * (processes > 1)}", figures)
