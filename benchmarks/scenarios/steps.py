"""Steps of one workflow, with two dependencies each, compared with the same number of plain jobs on one worker
process."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from uuid import UUID

import msgspec

from benchmarks.bench import Bench
from benchmarks.draining import PAUSE, SLOTS, SPAN, drain, mean, resume
from benchmarks.processes import workers
from benchmarks.raw_sql import PAYLOAD
from benchmarks.report import Result, Row
from foliot.clock import SystemClock
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.model.workflow import Workflow, check, plan

NAME = "steps"
TITLE = "the steps of a workflow, with two dependencies each, compared with plain jobs"
LAYER = 1000
"""Each step waits for two steps before it: this measures the cost of a step, not the length of a chain."""


async def measure(bench: Bench) -> Result:
    jobs = bench.size(8000, full=10_000, tiny=200)
    before = await drain(bench, jobs)
    await bench.empty()
    await bench.session.execute(PAUSE, "default")
    _, insert_seconds = await insert(bench, {"steps": _layers(jobs)})
    await bench.session.execute("vacuum analyze foliot.runs")
    async with workers(bench, 1, f"default={SLOTS}"):
        await resume(bench, "default")
        while await bench.session.fetchval("select exists (select from foliot.runs)"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    done, _, seconds = await bench.session.fetchrow(SPAN, "noop", "default", None)
    if done != jobs:
        raise RuntimeError(f"{done} steps in history of {jobs}")
    plain = mean([before, await drain(bench, jobs)])
    return Result(
        [
            Row("plain jobs", {"per_second": plain.per_second, "ratio": 1.0}),
            Row(
                "steps",
                {
                    "per_second": jobs / seconds,
                    "ratio": jobs / seconds / plain.per_second,
                    "insert_seconds": insert_seconds,
                },
            ),
        ],
        settings={"steps": jobs, "slots": SLOTS},
    )


async def insert(bench: Bench, definition: dict[str, Any]) -> tuple[UUID, float]:
    """Stores the workflow. Returns its id and the seconds that it took."""
    began = SystemClock().monotonic()
    asked = msgspec.convert(definition, Workflow)
    run = NewRun(new_id(), "workflow", "default", payload=msgspec.json.encode(asked).decode())
    await bench.store.workflows.insert_workflow(run, plan(check(asked)), asked.on_failure)
    return run.id, SystemClock().monotonic() - began


def _layers(jobs: int) -> list[dict[str, Any]]:
    chance, payload = random.Random(1), msgspec.json.decode(PAYLOAD)
    return [
        {
            "key": f"s{number}",
            "task": "noop",
            "queue": "default",
            "payload": payload,
            "after": [
                f"s{number - number % LAYER - before}"
                for before in chance.sample(range(1, LAYER + 1), 2 * (number >= LAYER))
            ],
        }
        for number in range(jobs)
    ]
