"""A program that submits in bulk, straight to PostgreSQL: `python -m benchmarks.bulk_client URL SECONDS BATCH`.

It prints `ready` when it is connected, starts when it reads a line from its input, and prints one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from time import perf_counter, process_time

from benchmarks.raw_sql import PAYLOAD
from benchmarks.tasks import noop
from foliot import App


def submit(url: str, seconds: float, batch: int) -> dict[str, float]:
    app = App(url=url)
    task, payloads = app.task(noop.function), [json.loads(PAYLOAD)] * batch
    task.submit_many(payloads)
    print("ready", flush=True)
    sys.stdin.readline()
    began, cpu, calls = perf_counter(), process_time(), 0
    while perf_counter() < began + seconds:
        task.submit_many(payloads)
        calls += 1
    found = {"jobs": calls * batch, "seconds": perf_counter() - began, "cpu_seconds": process_time() - cpu}
    app.close()
    return found


async def side_by_side(programs: int, url: str, seconds: float, batch: int) -> list[dict[str, float]]:
    """Runs several of these processes at once, and returns their results."""
    command = [sys.executable, "-m", "benchmarks.bulk_client", url, str(seconds), str(batch)]
    started = [await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE) for _ in range(programs)]
    for one in started:
        assert one.stdout is not None
        await one.stdout.readline()
    said = await asyncio.gather(*(one.communicate(b"go\n") for one in started))
    if failed := [one.returncode for one in started if one.returncode]:
        raise RuntimeError(f"a program that submits ended with exit code {failed[0]}")
    return [json.loads(output) for output, _ in said]


if __name__ == "__main__":
    print(json.dumps(submit(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))))
