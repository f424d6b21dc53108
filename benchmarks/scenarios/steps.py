"""Steps beside plain jobs on the same worker process; and a map over a million items, stopped half-way or run to its end."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
import psutil

from benchmarks.drain import PAYLOAD, SUBMIT_BATCH
from foliot.clock import SystemClock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.model.workflow import Workflow, check, plan
from foliot.store.store import Store, open_store

LAYER = 1000
"""So many steps wait for two of as many before them: what is measured is what a step costs, not how long a chain takes."""
SPAN = "select count(*), extract(epoch from max(finished_at) - min(started_at))::float8 from foliot.history where task = 'noop'"
CHECKSUM = """
select count(*), count(distinct step), coalesce(sum((payload ->> 'item')::bigint), 0)::bigint
from foliot.history where parent_id = $1 and state = 'succeeded'
"""


@asynccontextmanager
async def foliot(url: str, *parts: list[str]) -> AsyncIterator[list[psutil.Process]]:
    environment = os.environ | {"FOLIOT_DATABASE_URL": url, "FOLIOT_LOG_LEVEL": "warning"}
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-m", "foliot", *part, env=environment, stdin=DEVNULL) for part in parts
    ]
    try:
        yield [psutil.Process(process.pid) for process in processes]
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            await process.wait()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[tuple[Store, Any]]:
    session = await asyncpg.connect(url)
    try:
        async with open_store(url, config=Config(), clock=SystemClock(), events=EventBus(), part="bench") as store:
            yield store, session
    finally:
        await session.close()


async def insert(store: Store, definition: dict[str, Any]) -> tuple[UUID, float]:
    """The workflow's id, and the seconds that it took to store it."""
    began = SystemClock().monotonic()
    asked = msgspec.convert(definition, Workflow)
    run = NewRun(new_id(), "workflow", "default", payload=msgspec.json.encode(asked).decode())
    await store.workflows.insert_workflow(run, plan(check(asked)), asked.on_failure)
    return run.id, SystemClock().monotonic() - began


async def drain_steps(url: str, *, jobs: int, slots: int) -> dict[str, float]:
    """Plain jobs a second before and after, and steps a second between."""
    chance = random.Random(1)
    payload = msgspec.json.decode(PAYLOAD)
    steps = [
        {
            "key": f"s{number}",
            "task": "noop",
            "queue": "default",
            "payload": payload,
            "after": [f"s{number - number % LAYER - before}" for before in chance.sample(range(1, LAYER + 1), 2 * (number >= LAYER))],
        }
        for number in range(jobs)
    ]
    async with opened(url) as (store, session):
        before = await _plain(url, store, session, jobs, slots)
        await session.execute("truncate foliot.history")
        _, seconds = await insert(store, {"steps": steps})
        stepwise = await _drained(url, session, jobs, slots)
        after = await _plain(url, store, session, jobs, slots)
    plain = (before + after) / 2
    return {"plain_per_second": plain, "steps_per_second": stepwise, "ratio": plain / stepwise, "insert_seconds": seconds}


async def _plain(url: str, store: Store, session: Any, jobs: int, slots: int) -> float:
    await session.execute("truncate foliot.history")
    runs = [NewRun(id=new_id(), task="noop", queue="default", payload=PAYLOAD) for _ in range(jobs)]
    for start in range(0, jobs, SUBMIT_BATCH):
        await store.runs.insert_runs(runs[start : start + SUBMIT_BATCH])
    return await _drained(url, session, jobs, slots)


async def _drained(url: str, session: Any, jobs: int, slots: int) -> float:
    """Runs a second of one worker process, from the first start to the last end."""
    await session.execute("vacuum analyze foliot.runs")
    async with foliot(url, ["worker", "benchmarks.tasks:app", "--queue", f"default={slots}"]):
        await _until(session, "select not exists (select from foliot.runs)")
        done, seconds = await session.fetchrow(SPAN)
    if done != jobs:
        raise RuntimeError(f"{done} runs in history of {jobs} jobs")
    return float(jobs / seconds)


async def map_items(url: str, *, items: int, slots: int) -> dict[str, float]:
    """All of them to the end once, and once more with a cancel on the way; the memory of every process meanwhile."""
    parts = [["scheduler"], ["worker", "benchmarks.tasks:app", "--queue", f"default={slots}"]]
    definition = {"steps": [{"key": "all", "task": "one", "queue": "default", "map": {"range": {"stop": items}}}]}
    async with opened(url) as (store, session), foliot(url, *parts) as processes:
        await session.execute("truncate foliot.history")
        await asyncio.sleep(3)
        began = SystemClock().monotonic()
        workflow_id, submitted = await insert(store, definition)
        map_id = await session.fetchval("select id from foliot.runs where parent_id = $1", workflow_id)
        memory = await _watched(session, workflow_id, processes)
        seconds = SystemClock().monotonic() - began
        done, distinct, checksum = await session.fetchrow(CHECKSUM, map_id)
        if not (done == distinct == items and checksum == items * (items - 1) // 2):
            raise RuntimeError(f"{done} items, {distinct} distinct, sum {checksum}")
        return {
            "items": items,
            "submit_seconds": submitted,
            "items_per_second": items / seconds,
            "memory_early_mb": memory[0] / 1e6,
            "memory_late_mb": memory[1] / 1e6,
            "cancel_seconds": await _cancelled(store, session, definition),
        }


async def _watched(session: Any, workflow_id: UUID, processes: list[psutil.Process]) -> tuple[int, int]:
    """The most memory of all processes together: in the first tenth of the items, and in all."""
    early = late = 0
    while not await session.fetchval("select exists (select from foliot.history where id = $1)", workflow_id):
        late = max(late, sum(process.memory_info().rss for process in processes))
        share = await session.fetchval(
            "select max((succeeded::float8 + failed) / greatest(1, total)) from foliot.parents where kind = 'map'"
        )
        if share is not None and share < 0.1:
            early = late
        await asyncio.sleep(0.2)
    return early, late


async def _cancelled(store: Store, session: Any, definition: dict[str, Any]) -> float:
    workflow_id, _ = await insert(store, definition)
    await _until(session, "select exists (select from foliot.parents where kind = 'map' and succeeded > 5000 and finished_at is null)")
    began = SystemClock().monotonic()
    await store.runs.mark_cancelled([workflow_id], "enough", is_forced=False)
    while await store.end_cancelled():
        pass
    await _until(session, "select exists (select from foliot.history where id = $1)", workflow_id)
    return SystemClock().monotonic() - began


async def _until(session: Any, question: str, *arguments: object) -> None:
    while not await session.fetchval(question, *arguments):  # noqa: ASYNC110
        await asyncio.sleep(0.02)
