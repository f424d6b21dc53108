"""The cost of idle workers: PostgreSQL's CPU time while there is nothing to do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from benchmarks.bench import Bench
from benchmarks.cpu import Meter
from benchmarks.processes import scheduler, workers
from benchmarks.report import Result, Row, at_most

NAME = "idle"
TITLE = "one scheduler node and idle worker processes: share of a core in use"
WANTED = 50
POSTGRES = "postgres_%_of_a_core"
CONNECTIONS = "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"


async def measure(bench: Bench) -> Result:
    numbers, seconds = [1, 2] if bench.is_tiny else [1, 10, WANTED], bench.size(10, full=60, tiny=1)
    # The other rows have no goal.
    briefly = seconds / 2
    async with scheduler(bench) as node, AsyncExitStack() as started:
        await asyncio.sleep(2)
        rows = [Row("scheduler alone", await _spent(bench, briefly, {"scheduler": [node]}))]
        pids: list[int] = []
        for number in numbers:
            pids += await started.enter_async_context(workers(bench, number - len(pids)))
            # Leaves out the work of starting up.
            await asyncio.sleep(4)
            long = seconds if number == numbers[-1] else briefly
            rows.append(Row(f"and {number} workers", await _spent(bench, long, {"scheduler": [node], "worker": pids})))
    return Result(
        rows,
        [at_most(f"PostgreSQL's CPU with {numbers[-1]} idle workers, % of a core", rows[-1].figures.get(POSTGRES), 5)],
        {"workers": numbers[-1], "seconds": seconds},
    )


async def _spent(bench: Bench, seconds: float, parts: Mapping[str, Sequence[int]]) -> dict[str, float]:
    meter = Meter({"postgres": [bench.postmaster], **parts})
    meter.start()
    await asyncio.sleep(seconds)
    meter.stop()
    return {f"{part}_%_of_a_core": 100 * cores for part, cores in meter.cores().items()} | {
        "connections": await bench.session.fetchval(CONNECTIONS)
    }
