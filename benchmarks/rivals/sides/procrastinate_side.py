"""Procrastinate: concurrency 20, which was its best, uvloop."""

import json
import sys

import uvloop
from procrastinate import App, PsycopgConnector

from effects import Recorder

app = App(connector=PsycopgConnector())


@app.task(name="noop")
async def noop(number: int, **_: object) -> None:
    recorder.record(number)


async def prepare() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def enqueue(jobs: int, payload: dict) -> None:
    async with app.open_async():
        for start in range(0, jobs, 1000):
            await noop.batch_defer_async(*({**payload, "number": number} for number in range(start, min(start + 1000, jobs))))


async def work() -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=20, fetch_job_polling_interval=0.5)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare"]:
            uvloop.run(prepare())
        case ["enqueue", jobs, payload]:
            uvloop.run(enqueue(int(jobs), json.loads(payload)))
        case ["work"]:
            recorder = Recorder()
            uvloop.run(work())
