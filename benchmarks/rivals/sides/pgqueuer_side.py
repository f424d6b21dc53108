"""PGQueuer: one asyncpg connection, batches of 1,000 (its default is 10), uvloop."""

import asyncio
import json
import sys
import time
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from effects import Recorder


async def prepare() -> None:
    await Queries(AsyncpgDriver(await asyncpg.connect())).install()


async def enqueue(jobs: int, payload: dict, due: float | None = None) -> None:
    queries = Queries(AsyncpgDriver(await asyncpg.connect()))
    for start in range(0, jobs, 1000):
        numbers = range(start, min(start + 1000, jobs))
        later = None if due is None else [timedelta(seconds=due - time.time())] * len(numbers)
        bodies = [json.dumps({**payload, "number": number}).encode() for number in numbers]
        await queries.enqueue(["noop"] * len(numbers), bodies, [0] * len(numbers), later)


async def pace(jobs: int, payload: dict) -> None:
    """Enqueues one job at a time, and prints the time at which each call returned."""
    queries = Queries(AsyncpgDriver(await asyncpg.connect()))
    for number in range(jobs):
        await queries.enqueue("noop", json.dumps({**payload, "number": number}).encode())
        print(time.monotonic(), flush=True)
        await asyncio.sleep(0.05)


async def work() -> None:
    queue, recorder = PgQueuer(AsyncpgDriver(await asyncpg.connect())), Recorder()

    @queue.entrypoint("noop")
    async def noop(job) -> None:
        recorder.record(json.loads(job.payload)["number"])

    await queue.run(batch_size=1000, dequeue_timeout=timedelta(seconds=0.5))


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
            uvloop.run(work())
