"""Delayed jobs that all become due at one instant: how long until every one of them has started."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from time import monotonic

from benchmarks import raw_sql
from benchmarks.bench import Bench
from benchmarks.cpu import Meter
from benchmarks.draining import BATCH, SLOTS
from benchmarks.effects import Effects
from benchmarks.processes import scheduler, workers
from benchmarks.raw_sql import PAYLOAD
from benchmarks.report import Result, Row, at_most, percentile
from foliot.model.ids import new_id
from foliot.model.run import NewRun

NAME = "due_at_once"
TITLE = "delayed jobs due at one instant, one scheduler node and one worker process: from the instant to their starts"
AHEAD_SECONDS = 4.0


async def measure(bench: Bench) -> Result:
    jobs, rounds = bench.size(5000, full=5000, tiny=200), bench.size(2, full=5, tiny=1)
    before = await raw_sql.limit(bench, jobs)
    rows = [await once(bench, jobs, f"round {which + 1}") for which in range(rounds)]
    raw = raw_sql.mean(before, await raw_sql.limit(bench, jobs))
    worst = max(row.figures["all_started_seconds"] or 0 for row in rows)
    return Result(
        [*rows, Row("raw SQL, all claimed and completed", {"all_started_seconds": jobs / raw.drain_per_second})],
        [at_most(f"{jobs:,} due at once: all started within, seconds", worst, 0.4)],
        {"jobs": jobs, "slots": SLOTS},
    )


async def once(bench: Bench, jobs: int, name: str = "") -> Row:
    await bench.empty()
    effects = Effects(bench.directory / "effects", jobs)
    payload = json.loads(PAYLOAD)
    async with scheduler(bench) as node, workers(bench, 1, f"default={SLOTS}", variables=effects.variables) as pids:
        meter = Meter({"postgres": [bench.postmaster], "scheduler": [node], "worker": pids})
        meter.start()
        due_at = datetime.now(UTC) + timedelta(seconds=AHEAD_SECONDS)
        due = monotonic() + (due_at - datetime.now(UTC)).total_seconds()
        runs = [
            NewRun(new_id(), "counted", "default", due_at=due_at, payload=json.dumps({"number": number, **payload}))
            for number in range(jobs)
        ]
        for start in range(0, jobs, BATCH):
            await bench.store.run_inserts.insert_runs(runs[start : start + BATCH])
        if monotonic() > due:
            raise RuntimeError(
                f"{jobs} jobs were not stored before they were due: the machine is too busy to measure this"
            )
        await asyncio.sleep(due - monotonic())
        await effects.until_started(jobs)
        meter.stop()
    found = effects.count()
    waits = [at - due for at in found.started.values()]
    if min(waits) < -0.001 or found.doubled:
        raise RuntimeError(f"a job started {-min(waits):.3f} s early, or {found.doubled} started twice")
    shown = {"first_seconds": min(waits), "p50_seconds": percentile(waits, 0.5), "all_started_seconds": max(waits)}
    return Row(name, {**shown, **meter.microseconds(jobs)})
