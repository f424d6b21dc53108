"""Foliot and its rivals run the same no-op jobs, one after the other on the same machine, with one and two worker
processes.

No system's own counts are used: each job records its start in shared memory, which reveals lost and repeated jobs. Jobs
are queued first, all processes start cold, and time counts from the first start of a job to the last.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from benchmarks import raw_sql
from benchmarks.bench import Bench
from benchmarks.cpu import Meter
from benchmarks.draining import SLOTS, submit
from benchmarks.effects import Effects
from benchmarks.raw_sql import PAYLOAD
from benchmarks.report import Figure, Goal, Result, Row, at_least
from benchmarks.rivals.installing import Unavailable
from benchmarks.rivals.stage import RIVALS, Stage, on_stage, until_more_than

NAME = "rivals"
TITLE = "no-op jobs, queued first and then run by Foliot and by others, with 1 and with 2 processes"
NOTHING_ELSE: Mapping[str, Sequence[int]] = MappingProxyType({})
WANTED = (("graphile, 2", 1.1), ("pgqueuer, 2", 1.5))


async def measure(bench: Bench) -> Result:
    quick, slow = bench.size(40_000, full=100_000, tiny=500), bench.size(3000, full=10_000, tiny=100)
    rows, notes = [], []
    before = await raw_sql.limit(bench, quick)
    rows += [await _foliot(bench, quick, processes) for processes in (1, 2)]
    for rival in RIVALS:
        jobs = quick if rival.is_quick else slow
        try:
            for processes in (1, 2):
                async with on_stage(bench, rival) as stage:
                    await stage.say("enqueue", str(jobs), PAYLOAD)
                    rows.append(await drained(bench, f"{rival.name}, {processes}", stage, jobs, processes, "work"))
        except Unavailable as error:
            notes.append(f"{rival.name} was left out: {error}")
    raw = raw_sql.mean(before, await raw_sql.limit(bench, quick)).drain_per_second
    shown = [Row(row.name, {**row.figures, "of_raw_sql": (row.figures["per_second"] or 0) / raw}) for row in rows]
    return Result(shown, _goals(rows), {"jobs": quick, "jobs_for_slow_rivals": slow}, notes)


def _goals(rows: Sequence[Row]) -> list[Goal]:
    found = {row.name: row.figures["per_second"] for row in rows}
    return [
        at_least(f"Foliot by {name} processes", _ratio(found["foliot, 2"], found.get(name)), bound)
        for name, bound in WANTED
    ]


def _ratio(ours: Figure, theirs: Figure) -> Figure:
    return None if not ours or not theirs else ours / theirs


async def _foliot(bench: Bench, jobs: int, processes: int) -> Row:
    await bench.empty()
    payload = json.loads(PAYLOAD)
    await submit(bench, jobs, task="counted", payload=lambda number: json.dumps({**payload, "number": number}))
    await bench.session.execute("vacuum analyze foliot.runs")
    environment = os.environ | {"FOLIOT_DATABASE_URL": bench.url, "FOLIOT_LOG_LEVEL": "warning"}
    stage = Stage([sys.executable, "-m", "foliot"], environment, bench.postmaster)
    words = ("worker", "benchmarks.tasks:app", "--queue", f"default={SLOTS}")
    return await drained(bench, f"foliot, {processes}", stage, jobs, processes, *words)


async def drained(
    bench: Bench,
    name: str,
    stage: Stage,
    jobs: int,
    processes: int,
    *words: str,
    others: Mapping[str, Sequence[int]] = NOTHING_ELSE,
) -> Row:
    """`others` are more processes whose CPU time counts."""
    effects = Effects(bench.directory / "effects", jobs, processes)
    async with stage.working(effects, processes, *words) as pids:
        meter = Meter({"store": [stage.store], "worker": pids, **others})
        before = await until_more_than(effects, 0, pause=0.02)
        # Measures from the first jobs on, without the start of Python or Node.
        meter.start()
        await until_more_than(effects, jobs - 1)
        meter.stop()
    found = effects.count()
    figures = {"per_second": len(found.started) / found.seconds, "lost": found.lost, "doubled": found.doubled}
    return Row(name, {**figures, **meter.microseconds(max(1, len(found.started) - before))})
