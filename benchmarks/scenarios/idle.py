"""What idle workers cost: PostgreSQL's CPU time while nothing is to be done."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from benchmarks.bench import Bench
from benchmarks.cpu import Meter
from benchmarks.processes import scheduler, workers
from benchmarks.report import Result, Row, at_most

NAME = "idle"
TITLE = "idle worker processes and one scheduler node: cores that are kept busy"
WANTED = 50
POSTGRES = "postgres_%_of_a_core"
CONNECTIONS = "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"


async def measure(bench: Bench) -> Result:
    number, seconds = bench.size(10, full=WANTED, tiny=2), bench.size(10, full=60, tiny=1)
    async with scheduler(bench) as node:
        await asyncio.sleep(2)
        alone = await _spent(bench, seconds, {"scheduler": [node]})
        async with workers(bench, number) as pids:
            # What is done once, at the start, is no part of it.
            await asyncio.sleep(5)
            together = await _spent(bench, seconds, {"scheduler": [node], "worker": pids})
    share = None
    if POSTGRES in together:
        # What a worker adds, times fifty: should there have been fewer.
        share = alone[POSTGRES] + (together[POSTGRES] - alone[POSTGRES]) / number * WANTED
    return Result(
        [Row("scheduler alone", alone), Row(f"and {number} workers", together)],
        [at_most(f"PostgreSQL's CPU with {WANTED} idle workers, % of a core", share, 5)],
        {"workers": number, "seconds": seconds},
        [] if number == WANTED else [f"for {WANTED} workers: what {number} add to the scheduler alone, times {WANTED / number:g}"],
    )


async def _spent(bench: Bench, seconds: float, parts: Mapping[str, Sequence[int]]) -> dict[str, float]:
    meter = Meter({"postgres": [bench.postmaster], **parts})
    meter.start()
    await asyncio.sleep(seconds)
    meter.stop()
    return {f"{part}_%_of_a_core": 100 * cores for part, cores in meter.cores().items()} | {
        "connections": await bench.session.fetchval(CONNECTIONS)
    }
