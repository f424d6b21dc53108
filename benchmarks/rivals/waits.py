"""Measures how soon jobs start in Foliot and in its rivals: one at a time on an idle system, and thousands that are due
at the same instant."""

from __future__ import annotations

import asyncio
from time import monotonic, time

from benchmarks.bench import Bench
from benchmarks.effects import Effects
from benchmarks.processes import scheduler
from benchmarks.raw_sql import PAYLOAD
from benchmarks.report import Figure, Result, Row, percentile, spread_ms
from benchmarks.rivals.installing import Unavailable
from benchmarks.rivals.stage import RIVALS, Rival, Stage, on_stage, until_more_than
from benchmarks.scenarios import due_at_once
from benchmarks.scenarios.latency import EVERY_SECONDS, seconds_of, starts

NAME = "rivals_waits"
TITLE = (
    "one job every 50 ms on an idle system, and thousands due at one instant: time until they start, with one "
    "worker process"
)
WARM_SECONDS = 3.0
AHEAD_SECONDS = 10.0


async def measure(bench: Bench) -> Result:
    single, due = bench.size(200, full=200, tiny=10), bench.size(5000, full=5000, tiny=100)
    async with scheduler(bench):
        ours: dict[str, Figure] = dict(spread_ms(seconds_of((await starts(bench, single))[0])))
    at_once = (await due_at_once.once(bench, due)).figures
    rows, notes = (
        [
            Row(
                "foliot",
                {**ours, **{name: at_once[name] for name in ("first_seconds", "p50_seconds", "all_started_seconds")}},
            )
        ],
        [],
    )
    for rival in RIVALS:
        try:
            rows.append(
                Row(rival.name, {**await _singly(bench, rival, single), **await _due_at_once(bench, rival, due)})
            )
        except Unavailable as error:
            notes.append(f"{rival.name} was left out: {error}")
    notes.append(
        "milliseconds: from the return of the call that submits to the start; seconds: from the instant at which all "
        "are due"
    )
    return Result(
        rows, settings={"one_at_a_time": single, "every_ms": 1e3 * EVERY_SECONDS, "due_at_once": due}, notes=notes
    )


async def _singly(bench: Bench, rival: Rival, jobs: int) -> dict[str, Figure]:
    async with on_stage(bench, rival) as stage:
        return await one_at_a_time(bench, stage, jobs)


async def one_at_a_time(bench: Bench, stage: Stage, jobs: int) -> dict[str, Figure]:
    effects = Effects(bench.directory / "effects", jobs)
    async with stage.working(effects, 1, "work"):
        await asyncio.sleep(WARM_SECONDS)
        returned = [float(line) for line in (await stage.say("pace", str(jobs), PAYLOAD)).splitlines()]
        await until_more_than(effects, jobs - 1)
    found = effects.count()
    return dict(spread_ms([max(0.0, at - returned[number]) for number, at in found.started.items()]))


async def _due_at_once(bench: Bench, rival: Rival, jobs: int) -> dict[str, Figure]:
    effects = Effects(bench.directory / "effects", jobs)
    async with on_stage(bench, rival) as stage, stage.working(effects, 1, "work"):
        await asyncio.sleep(WARM_SECONDS)
        due_at, due = time() + AHEAD_SECONDS, monotonic() + AHEAD_SECONDS
        await stage.say("delayed", str(jobs), PAYLOAD, str(due_at))
        if monotonic() > due:
            raise Unavailable(f"{jobs} jobs were not stored within {AHEAD_SECONDS:.0f} s: too late to be due together")
        await asyncio.sleep(due - monotonic())
        await until_more_than(effects, jobs - 1)
    found = effects.count()
    waits = [at - due for at in found.started.values()]
    shown: dict[str, Figure] = {
        "first_seconds": min(waits),
        "p50_seconds": percentile(waits, 0.5),
        "all_started_seconds": max(waits),
    }
    return shown | {"lost": found.lost, "doubled": found.doubled}
