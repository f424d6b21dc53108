"""Drain: no-op Python jobs are queued first; then one worker process starts and works until none is left."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL
from typing import Any

import asyncpg
import psutil

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.store.store import open_store

PAYLOAD = json.dumps({"to": "someone@example.com", "n": 1, "text": "x" * 150})
SUBMIT_BATCH = 1000
SPAN = """
select count(*), count(distinct id), extract(epoch from max(finished_at) - min(started_at))::float8
from foliot.history where task = 'noop'
"""


async def submit(url: str, jobs: int) -> float:
    """Jobs a second that Foliot stored, in bulk."""
    config, clock, events = Config(), SystemClock(), EventBus()
    async with open_store(url, config=config, clock=clock, events=events, part="bench") as store:
        runs = [NewRun(id=new_id(), task="noop", queue="default", payload=PAYLOAD) for _ in range(jobs)]
        began = clock.monotonic()
        for start in range(0, jobs, SUBMIT_BATCH):
            await store.runs.insert_runs(runs[start : start + SUBMIT_BATCH])
        return jobs / (clock.monotonic() - began)


async def measure(url: str, *, jobs: int, slots: int) -> dict[str, float]:
    submitted = await submit(url, jobs)
    session = await asyncpg.connect(url)
    await session.execute("vacuum analyze foliot.runs")
    environment = os.environ | {"FOLIOT_DATABASE_URL": url, "FOLIOT_LOG_LEVEL": "warning"}
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "foliot", "worker", "benchmarks.tasks:app", "--queue", f"default={slots}", env=environment, stdin=DEVNULL
    )
    process = psutil.Process(worker.pid)
    try:
        cpu = await _wait_until_empty(session, process)
        done, distinct, seconds = await session.fetchrow(SPAN)
    finally:
        worker.terminate()
        await worker.wait()
        await session.close()
    if not done == distinct == jobs:
        raise RuntimeError(f"{done} runs in history, {distinct} distinct, of {jobs} jobs")
    return {"insert_per_second": submitted, "drain_per_second": jobs / seconds, "worker_cpu_us": cpu / jobs * 1e6}


async def _wait_until_empty(session: Any, process: psutil.Process) -> float:
    """The worker's CPU seconds from its first claim to its last completion, about."""
    before: float | None = None
    while await session.fetchval("select exists (select from foliot.runs)"):
        if before is None and await session.fetchval("select exists (select from foliot.history)"):
            before = _cpu(process)
        await asyncio.sleep(0.05)
    return _cpu(process) - (before or 0.0)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
