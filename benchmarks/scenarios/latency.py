"""How soon a job starts on an idle system: from the return of the call that submits it to the first line of its function."""

from __future__ import annotations

import asyncio
import json
from time import monotonic

import asyncpg

from benchmarks.bench import Bench
from benchmarks.cpu import Meter
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


async def measure(bench: Bench) -> Result:
    jobs = bench.size(400, full=1200, tiny=10)
    before = await raw_starts(bench, jobs // 4)
    async with scheduler(bench):
        found, cpu = await starts(bench, jobs)
    raw = spread_ms(before + await raw_starts(bench, jobs // 4))
    waited = spread_ms(found)
    return Result(
        [Row("submit in process to start", {**waited, **cpu}), Row("raw SQL: insert, notify, claim", raw)],
        [
            at_most("submitted to started: p50, ms", waited["p50_ms"], 2),
            at_most("submitted to started: p99, ms", waited["p99_ms"], 5),
        ],
        {"jobs": jobs, "every_ms": 1e3 * EVERY_SECONDS},
        ["a job that had started before the call returned counts as 0"],
    )


async def starts(bench: Bench, jobs: int, *, queue: str = "default") -> tuple[list[float], dict[str, float]]:
    """Seconds of each job, with one warm worker; and what a job cost."""
    effects = Effects(bench.directory / "effects", jobs + 1)
    app = App(url=bench.url)
    task, payload = app.task(name="counted")(counted.function).with_options(queue=queue), json.loads(PAYLOAD)
    returned: list[float] = []
    try:
        async with workers(bench, 1, f"{queue}=100", variables=effects.variables) as pids:
            # The first one finds everything cold.
            await task.submit_async(number=jobs, **payload)
            await effects.until_started(1)
            meter = Meter({"postgres": [bench.postmaster], "worker": pids})
            meter.start()
            began = monotonic()
            for number in range(jobs):
                await asyncio.sleep(max(0.0, began + number * EVERY_SECONDS - monotonic()))
                await task.submit_async(number=number, **payload)
                returned.append(monotonic())
            await effects.until_started(jobs + 1)
            meter.stop()
    finally:
        await asyncio.to_thread(app.close)
    found = effects.count()
    if found.doubled:
        raise RuntimeError(f"{found.doubled} jobs started twice")
    return [max(0.0, found.started[number] - returned[number]) for number in range(jobs)], meter.microseconds(jobs)


async def raw_starts(bench: Bench, jobs: int) -> list[float]:
    """The least that it takes: an insert, a notice, and the claim of who heard it."""
    submitting, claiming = await asyncpg.connect(bench.url), await asyncpg.connect(bench.url)
    heard = asyncio.Event()
    waited = []
    try:
        await submitting.execute(SCHEMA)
        await claiming.add_listener("yardstick", lambda *_: heard.set())
        for _ in range(jobs):
            await asyncio.sleep(EVERY_SECONDS)
            await submitting.execute(INSERT, [new_id()], [0], PAYLOAD)
            returned = monotonic()
            await submitting.execute("notify yardstick")
            await heard.wait()
            heard.clear()
            while not await claiming.fetch(CLAIM, "default", 100, new_id()):
                pass
            waited.append(monotonic() - returned)
    finally:
        await submitting.execute("drop schema if exists yardstick cascade")
        await submitting.close()
        await claiming.close()
    return waited
