"""Procrastinate: concurrency 20, which was its best, uvloop."""

import asyncio
import json
import logging
import sys
import time
from datetime import UTC, datetime

import uvloop
from procrastinate import App, PsycopgConnector

from effects import Recorder

# Otherwise it warns at each start that it runs as a program.
logging.basicConfig(level=logging.ERROR)
app = App(connector=PsycopgConnector())


@app.task(name="noop")
async def noop(number: int, **_: object) -> None:
    recorder.record(number)


async def prepare() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def enqueue(jobs: int, payload: dict, due: float | None = None) -> None:
    task = noop if due is None else noop.configure(schedule_at=datetime.fromtimestamp(due, UTC))
    async with app.open_async():
        for start in range(0, jobs, 1000):
            await task.batch_defer_async(
                *({**payload, "number": number} for number in range(start, min(start + 1000, jobs)))
            )


async def pace(jobs: int, payload: dict) -> None:
    """Enqueues one job at a time, and prints the time at which each call returned."""
    async with app.open_async():
        for number in range(jobs):
            await noop.defer_async(**{**payload, "number": number})
            print(time.monotonic(), flush=True)
            await asyncio.sleep(0.05)


async def work() -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=20, fetch_job_polling_interval=0.5)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare"]:
            uvloop.run(prepare())
        case ["enqueue", jobs, payload]:
            uvloop.run(enqueue(int(jobs), json.loads(payload)))
        case ["delayed", jobs, payload, due]:
            uvloop.run(enqueue(int(jobs), json.loads(payload), float(due)))
        case ["pace", jobs, payload]:
            uvloop.run(pace(int(jobs), json.loads(payload)))
        case ["work"]:
            recorder = Recorder()
            uvloop.run(work())
