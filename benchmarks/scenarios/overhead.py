"""The overhead for jobs of a known duration: CPU time, and time in which a slot is idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter

from benchmarks.bench import Bench
from benchmarks.draining import Drained, drain
from benchmarks.report import Result, Row, at_most
from benchmarks.tasks import nap, spin

NAME = "overhead"
TITLE = "overhead of jobs of a known length, on slots that are always full"


async def measure(bench: Bench) -> Result:
    rounds = bench.size(6, full=30, tiny=2)
    rows = []
    for task, seconds, slots, times in (
        ("nap", 0.1, 100, 2 * rounds),
        ("nap", 1.0, 100, rounds),
        ("spin", 0.1, 1, 2 * rounds),
    ):
        jobs = slots * (times if not bench.is_tiny else 1)
        raw = await _raw_seconds(task, slots, jobs, seconds)
        found = await drain(bench, jobs, task=task, slots=slots, payload=_lasting(seconds))
        rows.append(
            _row(f"{task} of {1e3 * seconds:,.0f} ms, {slots} slot{'s' * (slots > 1)}", found, jobs, raw, seconds)
        )
    return Result(
        rows,
        [
            at_most("1 s on 100 slots: time added, %", rows[1].figures["time_added_%"], 1.0),
            at_most("100 ms: CPU added, % of the job's length", rows[0].figures["cpu_added_%"], 1.0),
        ],
        notes=[
            "bare: the same functions called by asyncio; `nap` waits, and `spin` keeps a core busy",
            "worker us of `spin` is without the function's own",
        ],
    )


def _lasting(seconds: float) -> Callable[[int], str]:
    return lambda _: f'{{"seconds": {seconds}}}'


def _row(name: str, found: Drained, jobs: int, raw: float, seconds: float) -> Row:
    took = jobs / found.per_second
    cpu = dict(found.cpu)
    if name.startswith("spin"):
        cpu["worker_us"] -= seconds * 1e6
    added = sum(cpu.values())
    return Row(
        name,
        {
            "seconds": took,
            "bare": raw,
            "time_added_%": 100 * (took / raw - 1),
            **cpu,
            "cpu_added_%": added / seconds / 1e4,
        },
    )


async def _raw_seconds(task: str, slots: int, jobs: int, seconds: float) -> float:
    """The same functions, called directly by asyncio."""

    async def one_after_another() -> None:
        for _ in range(jobs // slots):
            await (nap(seconds) if task == "nap" else asyncio.to_thread(spin, seconds))

    began = perf_counter()
    await asyncio.gather(*(one_after_another() for _ in range(slots)))
    return perf_counter() - began
