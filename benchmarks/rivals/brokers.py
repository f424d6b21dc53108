"""Foliot with `dispatch` on Redis and on RabbitMQ, beside systems that keep their jobs in the same server.

Foliot's jobs are in PostgreSQL, and the broker only tells which are ready; a scheduler node publishes them. So Foliot
uses more processes: the CPU time of all of them is counted. Jobs are recorded as in `rivals`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.draining import SLOTS, submit
from benchmarks.processes import scheduler
from benchmarks.raw_sql import PAYLOAD
from benchmarks.report import Figure, Result, Row, spread_ms
from benchmarks.rivals import rabbitmq, redis
from benchmarks.rivals.compare import drained
from benchmarks.rivals.installing import Unavailable
from benchmarks.rivals.stage import BULLMQ, CELERY, DRAMATIQ, Rival, Stage, broker_stage
from benchmarks.rivals.waits import one_at_a_time
from benchmarks.scenarios.latency import EVERY_SECONDS, seconds_of, starts

NAME = "brokers"
TITLE = "no-op jobs through Redis and RabbitMQ, with one worker process: queued first and then run; one every 50 ms"
Started = Callable[[Path], AbstractAsyncContextManager[tuple[str, int]]]
SERVERS: tuple[tuple[str, Started, tuple[Rival, ...]], ...] = (
    ("redis", redis.started, (CELERY, DRAMATIQ, BULLMQ)),
    ("rabbitmq", rabbitmq.started, (CELERY, DRAMATIQ)),
)
NOTE = (
    "per_second: from the first start of a job to the last; milliseconds: from the return of the call that submits to "
    "the start; store_us: CPU time of PostgreSQL for Foliot, and of the broker for the others"
)


async def measure(bench: Bench) -> Result:
    quick, slow = bench.size(40_000, full=100_000, tiny=300), bench.size(5000, full=20_000, tiny=100)
    single = bench.size(200, full=400, tiny=10)
    rows, notes = [], [NOTE]
    for kind, started, rivals in SERVERS:
        try:
            async with started(bench.directory) as (url, pid):
                rows.append(await _foliot(bench, kind, url, pid, quick, single))
                for rival in rivals:
                    try:
                        rows.append(await _rival(bench, rival, kind, url, pid, slow, single))
                    except Unavailable as error:
                        notes.append(f"{rival.name} on {kind} was left out: {error}")
        except Unavailable as error:
            notes.append(f"{kind} was left out: {error}")
    settings = {"jobs": quick, "jobs_of_others": slow, "one_at_a_time": single, "every_ms": 1e3 * EVERY_SECONDS}
    return Result(rows, settings=settings, notes=notes)


async def _foliot(bench: Bench, kind: str, url: str, pid: int, jobs: int, single: int) -> Row:
    await bench.empty()
    payload = json.loads(PAYLOAD)
    await submit(bench, jobs, task="counted", payload=lambda number: json.dumps({**payload, "number": number}))
    await bench.session.execute("vacuum analyze foliot.runs")
    settings = {"dispatch": kind, "dispatch_url": url}
    environment = os.environ | {f"FOLIOT_{name.upper()}": value for name, value in settings.items()}
    environment |= {"FOLIOT_DATABASE_URL": bench.url, "FOLIOT_LOG_LEVEL": "warning"}
    stage = Stage([sys.executable, "-m", "foliot"], environment, bench.postmaster)
    words = ("worker", "benchmarks.tasks:app", "--queue", f"default={SLOTS}")
    async with scheduler(bench, **settings) as node:
        others = {"broker": [pid], "scheduler": [node]}
        found = await drained(bench, f"foliot on {kind}", stage, jobs, 1, *words, others=others)
        waits: dict[str, Figure] = dict(spread_ms(seconds_of((await starts(bench, single, **settings))[0])))
    return Row(found.name, {**found.figures, **waits})


async def _rival(bench: Bench, rival: Rival, kind: str, url: str, pid: int, jobs: int, single: int) -> Row:
    async with broker_stage(bench, rival, url, pid) as stage:
        await stage.say("enqueue", str(jobs), PAYLOAD)
        found = await drained(bench, f"{rival.name} on {kind}", stage, jobs, 1, "work")
        return Row(found.name, {**found.figures, **await one_at_a_time(bench, stage, single)})
