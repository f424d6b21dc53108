"""How soon a job starts on an idle system: from the return of the submitting call to the first line of its function.

On a shared host, a core can be gone for ten milliseconds and more at a time. Jobs during which that happened are
reported separately, and so are those of raw SQL.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple

import asyncpg

from benchmarks.bench import Bench
from benchmarks.cpu import Meter, stolen_seconds
from benchmarks.effects import Effects
from benchmarks.processes import scheduler, workers
from benchmarks.raw_sql import CLAIM, INSERT, PAYLOAD, SCHEMA
from benchmarks.report import Result, Row, at_most, spread_ms
from benchmarks.tasks import counted
from foliot import App
from foliot.model.ids import new_id

NAME = "latency"
TITLE = "one job every 50 ms on an idle system: from submitted to started"
EVERY_SECONDS = 0.05
UNDISTURBED_LEAST = 100
"""With fewer undisturbed jobs a p99 means nothing, so all jobs count."""


class Wait(NamedTuple):
    seconds: float
    is_disturbed: bool
    """Between its submission and the next, the host took a core away."""


async def measure(bench: Bench) -> Result:
    jobs = bench.size(400, full=1200, tiny=10)
    raw = await raw_starts(bench, jobs // 4)
    async with scheduler(bench):
        found, cpu = await starts(bench, jobs)
    raw += await raw_starts(bench, jobs // 4)
    judged = undisturbed(found) if len(undisturbed(found)) >= UNDISTURBED_LEAST else seconds_of(found)
    waited = spread_ms(judged)
    rows = [Row("submit in process to start", {"jobs": len(found), **spread_ms(seconds_of(found)), **cpu})]
    rows.append(Row("raw SQL: insert, notify, claim", {"jobs": len(raw), **spread_ms(seconds_of(raw))}))
    for name, waits in (
        ("... while the host took nothing away", found),
        ("raw SQL, while the host took nothing away", raw),
    ):
        if 0 < len(undisturbed(waits)) < len(waits):
            rows.append(Row(name, {"jobs": len(undisturbed(waits)), **spread_ms(undisturbed(waits))}))
    return Result(
        rows,
        [
            at_most("submitted to started: p50, ms", waited["p50_ms"], 2),
            at_most("submitted to started: p99, ms", waited["p99_ms"], 5),
        ],
        {"jobs": jobs, "every_ms": 1e3 * EVERY_SECONDS},
        [
            "a job that had started before the call returned counts as 0",
            f"goals: by the {len(judged)} jobs during which the host took no core away"
            if len(judged) < len(found)
            else "goals: by all jobs",
        ],
    )


def seconds_of(waits: Sequence[Wait]) -> list[float]:
    return [wait.seconds for wait in waits]


def undisturbed(waits: Sequence[Wait]) -> list[float]:
    return [wait.seconds for wait in waits if not wait.is_disturbed]


async def starts(
    bench: Bench, jobs: int, *, queue: str = "default", **settings: str
) -> tuple[list[Wait], dict[str, float]]:
    """Measures the wait of each job with one warm worker, and the cost of a job."""
    effects = Effects(bench.directory / "effects", jobs + 1)
    app = App(url=bench.url)
    task, payload = app.task(name="counted")(counted.function).with_options(queue=queue), json.loads(PAYLOAD)
    returned: list[float] = []
    stolen: list[float] = []
    try:
        async with workers(bench, 1, f"{queue}=100", variables=effects.variables, **settings) as pids:
            # The first job finds everything cold.
            await task.submit_async(number=jobs, **payload)
            await effects.until_started(1)
            meter = Meter({"postgres": [bench.postmaster], "worker": pids})
            meter.start()
            began = monotonic()
            for number in range(jobs):
                await asyncio.sleep(max(0.0, began + number * EVERY_SECONDS - monotonic()))
                stolen.append(stolen_seconds())
                await task.submit_async(number=number, **payload)
                returned.append(monotonic())
            await effects.until_started(jobs + 1)
            stolen.append(stolen_seconds())
            meter.stop()
    finally:
        await asyncio.to_thread(app.close)
    found = effects.count()
    if found.doubled:
        raise RuntimeError(f"{found.doubled} jobs started twice")
    return told_apart(
        [max(0.0, found.started[number] - returned[number]) for number in range(jobs)], stolen
    ), meter.microseconds(jobs)


def told_apart(seconds: Sequence[float], stolen: Sequence[float]) -> list[Wait]:
    """Separates the jobs during which the host took time away. `stolen` holds the total when each job began, and after
    the last."""
    return [Wait(one, stolen[at + 1] > stolen[at]) for at, one in enumerate(seconds)]


async def raw_starts(bench: Bench, jobs: int) -> list[Wait]:
    """The minimum: an insert, a notification, and a claim by the listener."""
    submitting, claiming = await asyncpg.connect(bench.url), await asyncpg.connect(bench.url)
    heard = asyncio.Event()
    waited = list[float]()
    stolen = [stolen_seconds()]
    try:
        await submitting.execute(SCHEMA)
        await claiming.add_listener("yardstick", lambda *_: heard.set())
        for _ in range(jobs):
            await submitting.execute(INSERT, [new_id()], [0], PAYLOAD)
            returned = monotonic()
            await submitting.execute("notify yardstick")
            await heard.wait()
            heard.clear()
            while not await claiming.fetch(CLAIM, "default", 100, new_id()):
                pass
            waited.append(monotonic() - returned)
            await asyncio.sleep(EVERY_SECONDS)
            stolen.append(stolen_seconds())
    finally:
        await submitting.execute("drop schema if exists yardstick cascade")
        await submitting.close()
        await claiming.close()
    return told_apart(waited, stolen)
