"""Random workflows on real workers that are killed end as the oracle predicts."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest

from foliot.store.store import Store
from tests.support.processes import FoliotProcess
from tests.support.runs import find_stuck
from tests.support.waiting import until
from tests.support.workflow_driver import draw, insert, seen_of
from tests.support.workflow_oracle import complaints, sum_up

WORKFLOWS = int(os.environ.get("CLUSTER_WORKFLOWS", "30"))
SEED = int(os.environ.get("CLUSTER_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
WORKERS = 2
KILLS = 3
BUSY = 3
APP = "tests.cluster.apps:app"

pytestmark = [pytest.mark.process, pytest.mark.timeout(600 + WORKFLOWS)]


async def test_random_workflows_on_killed_workers_end_as_predicted(database_url: str, store: Store, sql: Any) -> None:
    print(f"CLUSTER_SEED={SEED}")  # noqa: T201
    chance = random.Random(SEED)
    environment = {
        "FOLIOT_DATABASE_URL": database_url,
        "FOLIOT_LOG_LEVEL": "info",
        "FOLIOT_WORKER_TTL_SECONDS": "6",
        "FOLIOT_WORKER_BEAT_SECONDS": "1",
        # Otherwise a step whose worker is killed repeatedly would fail as the cause of the deaths.
        "FOLIOT_LOST_ATTEMPTS_MAX": "100",
    }

    async with AsyncExitStack() as stack:

        async def start() -> FoliotProcess:
            process = FoliotProcess("worker", APP, "--queue", "default=10", environment=environment)
            return await stack.enter_async_context(process)

        await stack.enter_async_context(FoliotProcess("scheduler", environment=environment))
        workers = [await start() for _ in range(WORKERS)]
        await asyncio.gather(*(worker.event("ProcessStarted", part="worker") for worker in workers))
        drawn = [draw(chance, most=40) for _ in range(WORKFLOWS)]
        ids = [await insert(store, one.definition) for one in drawn]
        store.hints.send(["default"])
        for _ in range(KILLS):
            # Kill a worker only once it holds runs.
            victim = workers.pop(0)
            worker_id = (await victim.event("WorkerRegistered"))["worker_id"]
            await until(partial(is_busy, sql, worker_id))
            victim.kill_tree()
            workers.append(await start())
            await workers[-1].event("ProcessStarted", part="worker")
        await until(lambda: nothing_left(store, sql), seconds=90 + WORKFLOWS)
    wrong = []
    for workflow_id, one in zip(ids, drawn, strict=True):
        seen = await seen_of(sql, workflow_id)
        wrong += [(one.definition, complaint) for complaint in complaints(one.given, seen, fails_fast=one.fails_fast)]
        state = await sql.fetchval("select state from foliot.history where id = $1", workflow_id)
        if state != sum_up(end.state for end in seen.values()):
            wrong.append((one.definition, f"the workflow is {state}"))
    assert wrong == []
    assert await sql.fetchval("select count(*) from foliot.attempts where outcome = 'lost'") > 0, (
        "nobody was killed while it ran"
    )


async def is_busy(sql: Any, worker_id: str) -> bool:
    running = await sql.fetchval(
        "select count(*) from foliot.runs where state = 'running' and worker_id = $1", worker_id
    )
    return running >= BUSY or not await sql.fetchval(
        "select exists (select from foliot.runs where state in ('ready', 'waiting', 'scheduled'))"
    )


async def nothing_left(store: Store, sql: Any) -> bool:
    assert await find_stuck(store) == []
    return not await sql.fetchval("select exists (select from foliot.runs)")
