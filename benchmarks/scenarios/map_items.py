"""A map over many items, run once to its end and once with a cancel, and the memory of its processes."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import psutil

from benchmarks.bench import Bench
from benchmarks.draining import SLOTS
from benchmarks.processes import scheduler, workers
from benchmarks.report import Figure, Result, Row
from benchmarks.scenarios.steps import insert
from foliot.clock import SystemClock

NAME = "map"
TITLE = "a map over many items, each run once; and the cancel of another one"
CHECKSUM = """
select count(*), count(distinct step), coalesce(sum((payload ->> 'item')::bigint), 0)::bigint
from foliot.history where parent_id = $1 and state = 'succeeded'
"""
DONE_SHARE = "select max((succeeded::float8 + failed) / greatest(1, total)) from foliot.parents where kind = 'map'"
HAS_ENDED = "select exists (select from foliot.history where id = $1)"
IS_HALF_WAY = "select exists (select from foliot.parents where kind = 'map' and succeeded > $1 and finished_at is null)"


async def measure(bench: Bench) -> Result:
    items = bench.size(50_000, full=1_000_000, tiny=500)
    definition = {"steps": [{"key": "all", "task": "one", "queue": "default", "map": {"range": {"stop": items}}}]}
    async with scheduler(bench) as node, workers(bench, 1, f"default={SLOTS}") as pids:
        began = SystemClock().monotonic()
        workflow_id, submit_seconds = await insert(bench, definition)
        map_id = await bench.session.fetchval("select id from foliot.runs where parent_id = $1", workflow_id)
        early, late = await _watched(bench, workflow_id, [psutil.Process(pid) for pid in (node, *pids)])
        seconds = SystemClock().monotonic() - began
        done, distinct, checksum = await bench.session.fetchrow(CHECKSUM, map_id)
        if not (done == distinct == items and checksum == items * (items - 1) // 2):
            raise RuntimeError(f"{done} items, {distinct} distinct, sum {checksum}")
        figures: dict[str, Figure] = {
            "per_second": items / seconds,
            "submit_seconds": submit_seconds,
            "memory_early_mb": early,
            "memory_late_mb": late,
        }
        figures["cancel_seconds"] = await _cancelled(bench, definition, items // 20)
    return Result([Row(f"{items:,} items", figures)], settings={"items": items, "slots": SLOTS})


async def _watched(bench: Bench, workflow_id: UUID, processes: list[psutil.Process]) -> tuple[float, float]:
    """The peak memory of all processes together, in MB: during the first tenth of the items, and during all."""
    early = late = 0.0
    while not await bench.session.fetchval(HAS_ENDED, workflow_id):
        late = max(late, sum(process.memory_info().rss for process in processes) / 1e6)
        share = await bench.session.fetchval(DONE_SHARE)
        if share is not None and share < 0.1:
            early = late
        await asyncio.sleep(0.2)
    return early, late


async def _cancelled(bench: Bench, definition: dict[str, Any], after: int) -> float | None:
    workflow_id, _ = await insert(bench, definition)
    while not await bench.session.fetchval(IS_HALF_WAY, after):
        if await bench.session.fetchval(HAS_ENDED, workflow_id):
            # Too few items to be observed.
            return None
        await asyncio.sleep(0.02)
    began = SystemClock().monotonic()
    await bench.store.cancellation.mark_cancelled([workflow_id], "enough", is_forced=False)
    while await bench.store.cancellation.end_cancelled():
        pass
    while not await bench.session.fetchval(HAS_ENDED, workflow_id):  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return SystemClock().monotonic() - began
