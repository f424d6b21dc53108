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


async def measure(bench: Bench) -> Result:
    number, seconds = bench.size(10, full=WANTED, tiny=2), bench.size(15, full=60, tiny=1)
    async with scheduler(bench) as node:
        await asyncio.sleep(2)
        alone = await _cores(bench, seconds, {"scheduler": [node]})
        async with workers(bench, number) as pids:
            # What is done once, at the start, is no part of it.
            await asyncio.sleep(5)
            together = await _cores(bench, seconds, {"scheduler": [node], "worker": pids})
    rows = [_row("scheduler alone", alone), _row(f"and {number} workers", together)]
    share = None
    if "postgres" in together:
        # What a worker adds, times fifty: should there have been fewer.
        share = 100 * (alone["postgres"] + (together["postgres"] - alone["postgres"]) / number * WANTED)
    return Result(
        rows,
        [at_most(f"PostgreSQL's CPU with {WANTED} idle workers, % of a core", share, 5)],
        {"workers": number, "seconds": seconds},
        [] if number == WANTED else [f"for {WANTED} workers: what {number} add to the scheduler alone, times {WANTED / number:g}"],
    )


def _row(name: str, cores: dict[str, float]) -> Row:
    return Row(name, {f"{part}_%_of_a_core": 100 * share for part, share in cores.items()})


async def _cores(bench: Bench, seconds: float, parts: Mapping[str, Sequence[int]]) -> dict[str, float]:
    meter = Meter({"postgres": [bench.postmaster], **parts})
    meter.start()
    await asyncio.sleep(seconds)
    meter.stop()
    return meter.cores()
