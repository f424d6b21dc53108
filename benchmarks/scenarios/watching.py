"""The cost of watching: jobs per second and the wait of a job, with traces, StatsD and series of jobs on and off."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, median

from benchmarks.bench import Bench
from benchmarks.draining import SLOTS, Drained, drain, mean, middle, resume
from benchmarks.far_ends import Arrived, far_ends
from benchmarks.processes import no_variables, scheduler, until
from benchmarks.raw_sql import PAYLOAD
from benchmarks.report import Result, Row, at_least, at_most, spread_ms
from benchmarks.scenarios.latency import seconds_of, starts

NAME = "watching"
TITLE = "traces, StatsD and series of jobs, on and off in turns"
OFF: Mapping[str, str] = {}
EXPORTED = "select bool_and(at > $1) from foliot.exports"


async def measure(bench: Bench) -> Result:
    jobs = bench.size(20_000, full=80_000, tiny=100)
    started = bench.size(100, full=600, tiny=10)
    turns = bench.size(4, full=8, tiny=1)
    arrived = Arrived()
    drained: dict[bool, list[Drained]] = {True: [], False: []}
    waited: dict[bool, list[list[float]]] = {True: [], False: []}
    async with far_ends(arrived) as on:
        for turn in range(turns):
            # Each pair in the other order, because the machine becomes slower and faster.
            for is_on in (True, False) if turn % 2 else (False, True):
                settings = on if is_on else OFF
                async with scheduler(bench, **settings):
                    drained[is_on].append(await _drain(bench, jobs, settings))
                    await resume(bench, "default")
                    found, _ = await starts(bench, started, **settings)
                    waited[is_on].append(seconds_of(found))
                    if is_on:
                        # The next turn is not measured beside the rest of this one.
                        now = await bench.session.fetchval("select clock_timestamp()")
                        await until(bench, EXPORTED, True, now)
    if not arrived.trace_bytes or not arrived.statsd_packets:
        raise RuntimeError(f"nothing was exported: {arrived}")
    ratio = middle(one.per_second / other.per_second for one, other in zip(drained[True], drained[False], strict=True))
    medians = {is_on: fmean(median(one) for one in waits) for is_on, waits in waited.items()}
    return Result(
        [
            *(_row(name, drained[is_on], waited[is_on]) for name, is_on in (("off", False), ("on", True))),
            Row("arrived", {"trace_mb": arrived.trace_bytes / 1e6, "statsd_packets": float(arrived.statsd_packets)}),
        ],
        [
            at_least("jobs per second, on by off", ratio, 0.9),
            at_most("p50 of submitted to started, on by off", medians[True] / medians[False], 1.1),
        ],
        {"jobs": jobs, "started": started, "turns": turns},
    )


async def _drain(bench: Bench, jobs: int, settings: Mapping[str, str]) -> Drained:
    usual = {"task": "noop"}
    return await drain(
        bench, jobs, processes=1, slots=SLOTS, payload=lambda _: PAYLOAD, variables=no_variables, **usual, **settings
    )


def _row(name: str, drained: list[Drained], waited: list[list[float]]) -> Row:
    found = mean(drained)
    return Row(
        name, {"per_second": found.per_second, **found.cpu, **spread_ms([one for each in waited for one in each])}
    )
