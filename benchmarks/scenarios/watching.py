"""The cost of watching: jobs per second and the wait of a job, with everything on and off.

Everything is traces, StatsD, series of jobs, alert rules, the search engine and the archive.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, median

from benchmarks.bench import Bench
from benchmarks.cpu import tree_seconds
from benchmarks.draining import SLOTS, Drained, drain, mean, middle, resume
from benchmarks.far_ends import Arrived, far_ends
from benchmarks.processes import no_variables, scheduler, until
from benchmarks.raw_sql import PAYLOAD
from benchmarks.report import Result, Row, at_least, at_most, spread_ms
from benchmarks.scenarios.latency import seconds_of, starts
from foliot.model.alert_rule import AlertRule, Condition, QueueLag, RunFailed, SuccessRate

NAME = "watching"
TITLE = "traces, StatsD, series of jobs, alerts, search engine and archive, on and off in turns"
RULES: Mapping[str, Condition] = {"failures": RunFailed(), "rate": SuccessRate(), "lag": QueueLag(above="1h")}
OFF: Mapping[str, str] = {}
EXPORTED = "select bool_and(at > $1) from foliot.exports"


async def measure(bench: Bench) -> Result:
    jobs = bench.size(20_000, full=80_000, tiny=100)
    started = bench.size(100, full=600, tiny=10)
    turns = bench.size(4, full=8, tiny=1)
    arrived = Arrived()
    drained: dict[bool, list[Drained]] = {True: [], False: []}
    nodes: dict[bool, list[float]] = {True: [], False: []}
    """Microseconds of the scheduler node for each job, until everything is exported."""
    waited: dict[bool, list[list[float]]] = {True: [], False: []}
    archive = bench.directory / "archive"
    archive.mkdir(exist_ok=True)
    async with far_ends(arrived, archive) as on:
        for turn in range(turns):
            # Each pair in the other order, because the machine becomes slower and faster.
            for is_on in (True, False) if turn % 2 else (False, True):
                settings = on if is_on else OFF
                await _set_rules(bench, is_on=is_on)
                async with scheduler(bench, **settings) as pid:
                    used = tree_seconds(pid)
                    drained[is_on].append(await _drain(bench, jobs, settings))
                    await resume(bench, "default")
                    found, _ = await starts(bench, started, **settings)
                    waited[is_on].append(seconds_of(found))
                    if is_on:
                        # The next turn is not measured beside the rest of this one.
                        now = await bench.session.fetchval("select clock_timestamp()")
                        await until(bench, EXPORTED, True, now)
                    nodes[is_on].append((tree_seconds(pid) - used) / (jobs + started) * 1e6)
    if not (arrived.trace_bytes and arrived.statsd_packets and arrived.documents):
        raise RuntimeError(f"nothing was exported: {arrived}")
    ratio = middle(one.per_second / other.per_second for one, other in zip(drained[True], drained[False], strict=True))
    medians = {is_on: fmean(median(one) for one in waits) for is_on, waits in waited.items()}
    return Result(
        [
            *(
                _row(name, drained[is_on], waited[is_on], fmean(nodes[is_on]))
                for name, is_on in (("off", False), ("on", True))
            ),
            Row(
                "arrived",
                {
                    "trace_mb": arrived.trace_bytes / 1e6,
                    "statsd_packets": float(arrived.statsd_packets),
                    "documents": float(arrived.documents),
                },
            ),
        ],
        [
            at_least("jobs per second, on by off", ratio, 0.9),
            at_most("p50 of submitted to started, on by off", medians[True] / medians[False], 1.1),
        ],
        {"jobs": jobs, "started": started, "turns": turns},
    )


async def _set_rules(bench: Bench, *, is_on: bool) -> None:
    rules = bench.store.alert_rules
    for name, condition in RULES.items():
        if is_on:
            await rules.put_alert_rule(name, AlertRule(condition=condition), "bench")
        else:
            await rules.delete_alert_rule(name, "bench")


async def _drain(bench: Bench, jobs: int, settings: Mapping[str, str]) -> Drained:
    usual = {"task": "noop"}
    return await drain(
        bench, jobs, processes=1, slots=SLOTS, payload=lambda _: PAYLOAD, variables=no_variables, **usual, **settings
    )


def _row(name: str, drained: list[Drained], waited: list[list[float]], scheduler_us: float) -> Row:
    found = mean(drained)
    return Row(
        name,
        {
            "per_second": found.per_second,
            **found.cpu,
            "scheduler_us": scheduler_us,
            **spread_ms([one for each in waited for one in each]),
        },
    )
