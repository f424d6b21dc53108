"""Submitting from a program straight to PostgreSQL: one by one, from many callers at once, and in bulk, compared with
raw SQL."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from statistics import median
from time import perf_counter, process_time

from benchmarks import over_http
from benchmarks.bench import Bench
from benchmarks.bulk_client import side_by_side
from benchmarks.cpu import Meter
from benchmarks.raw_sql import INSERT, PAYLOAD, SCHEMA
from benchmarks.report import Result, Row, at_least, spread_ms
from benchmarks.tasks import noop
from foliot import App
from foliot.model.ids import new_id
from foliot.model.run import NewRun

NAME = "submit"
TITLE = "jobs submitted in process, straight to PostgreSQL"
CALLERS = 64
BATCH = 1000
CALLS = 10
"""In a row, before it is somebody else's turn."""
Submit = Callable[[], Awaitable[object]]


async def measure(bench: Bench) -> Result:
    seconds, rounds = bench.size(3, full=15, tiny=1), bench.size(10, full=40, tiny=1)
    app = App(url=bench.url)
    task, payload = app.task(noop.function), json.loads(PAYLOAD)

    async def single() -> None:
        await task.submit_async(**payload)

    async def bulk() -> None:
        await task.submit_many_async([payload] * BATCH)

    try:
        raw_before = await _raw_singles(bench, seconds)
        alone = await _timed(bench, single, callers=1, seconds=seconds)
        many = await _timed(bench, single, callers=CALLERS, seconds=seconds)
        raw_single = (raw_before + await _raw_singles(bench, seconds)) / 2
        in_bulk, stored, raw = await _in_turns(bench, bulk, rounds)
        two_programs = await _two_programs(bench, seconds)
    finally:
        await asyncio.to_thread(app.close)
    two_programs |= {"raw_sql": raw["per_second"], "ratio": two_programs["per_second"] / raw["per_second"]}
    return Result(
        [
            Row("single, one caller after the other", alone),
            Row(
                f"single, {CALLERS} callers at once",
                {**many, "raw_sql": raw_single, "ratio": many["per_second"] / raw_single},
            ),
            Row(f"bulk, {BATCH:,} a call (`submit_many`), one after the other", in_bulk),
            Row(f"bulk, {BATCH:,} a call, two programs", two_programs),
            Row(f"bulk, {BATCH:,} a call, inside Foliot", stored),
            Row(f"bulk, {BATCH:,} a call, raw SQL", raw),
        ],
        [
            at_least("single jobs a second in process", many["per_second"], 3000),
            at_least("bulk, inside Foliot: share of raw inserts", stored["ratio"], 0.7),
            at_least("bulk, two programs: share of raw inserts", two_programs["ratio"], 0.7),
        ],
        {"seconds": seconds, "rounds": rounds},
        [
            "client us: the CPU time of the program that submits",
            "percentiles are of one call",
            f"bulk: {CALLS} calls each in turn with raw SQL; ratio: that of the turn in the middle",
            "raw SQL in bulk: one connection, one payload for all rows; one caller of ours waits while PostgreSQL "
            "works, and the reverse",
        ],
    )


async def _in_turns(bench: Bench, bulk: Submit, rounds: int) -> tuple[dict[str, float], ...]:
    """Measures `submit_many`, its part inside Foliot, and raw SQL in turns. For the last two, the rows are prepared
    beforehand."""
    made = [new_id() for _ in range((rounds * CALLS + 1) * BATCH)]
    runs = [NewRun(id=run_id, task="noop", queue="default", payload=PAYLOAD) for run_id in made]
    ranks = list(range(BATCH))

    async def inside() -> None:
        await bench.store.run_inserts.insert_runs(runs[-BATCH:])
        del runs[-BATCH:]

    async def raw() -> None:
        await bench.session.execute(INSERT, made[-BATCH:], ranks, PAYLOAD)
        del made[-BATCH:]

    turns = [Turns(bench, submit) for submit in (bulk, inside, raw)]
    await bench.empty()
    await bench.session.execute(SCHEMA)
    try:
        for turn in turns:
            # Connecting is no part of it.
            await turn.submit()
        for number in range(rounds):
            for turn in turns if number % 2 else reversed(turns):
                await turn.take()
        stored = await bench.session.fetchval(
            "select (select count(*) from foliot.runs) + (select count(*) from yardstick.live)"
        )
    finally:
        await bench.session.execute("drop schema yardstick cascade")
    if stored != len(turns) * (rounds * CALLS + 1) * BATCH:
        raise RuntimeError(
            f"{stored} jobs are stored, and {len(turns) * (rounds * CALLS + 1) * BATCH} were answered for"
        )
    return tuple(turn.figures(beside=turns[-1]) for turn in turns)


class Turns:
    """The result of one of several that take turns, so that the machine is the same for all."""

    def __init__(self, bench: Bench, submit: Submit) -> None:
        self.submit = submit
        self._meter = Meter({"postgres": [bench.postmaster]})
        self._calls: list[float] = []
        self._used: list[dict[str, float]] = []
        self._rates: list[float] = []

    async def take(self) -> None:
        own, calls = process_time(), list[float]()
        self._meter.start()
        for _ in range(CALLS):
            asked = perf_counter()
            await self.submit()
            calls.append(perf_counter() - asked)
        self._meter.stop()
        jobs = CALLS * BATCH
        self._used.append(self._meter.microseconds(jobs) | {"client_us": (process_time() - own) / jobs * 1e6})
        self._rates.append(jobs / sum(calls))
        self._calls += calls

    def figures(self, *, beside: Turns) -> dict[str, float]:
        used = {name: sum(one[name] for one in self._used) / len(self._used) for name in self._used[0]}
        found = {"per_second": median(self._rates), **spread_ms(self._calls), **used}
        if beside is self:
            return found
        ratio = median(one / other for one, other in zip(self._rates, beside._rates, strict=True))
        return found | {"raw_sql": median(beside._rates), "ratio": ratio}


async def _timed(bench: Bench, submit: Submit, *, callers: int, seconds: float) -> dict[str, float]:
    await bench.empty()
    # Connecting is no part of it.
    await submit()
    latencies: list[float] = []
    meter = Meter({"postgres": [bench.postmaster]})
    meter.start()
    began, own = perf_counter(), process_time()

    async def one_after_another() -> None:
        while (asked := perf_counter()) < began + seconds:
            await submit()
            latencies.append(perf_counter() - asked)

    await asyncio.gather(*(one_after_another() for _ in range(callers)))
    took, own = perf_counter() - began, process_time() - own
    meter.stop()
    stored, jobs = await bench.session.fetchval("select count(*) from foliot.runs"), len(latencies)
    if stored != jobs + 1:
        raise RuntimeError(f"{stored} jobs are stored, and {jobs + 1} were answered for")
    return {
        "per_second": jobs / took,
        **spread_ms(latencies),
        **meter.microseconds(jobs),
        "client_us": own / jobs * 1e6,
    }


async def _two_programs(bench: Bench, seconds: float) -> dict[str, float]:
    await bench.empty()
    meter = Meter({"postgres": [bench.postmaster]})
    meter.start()
    found = await side_by_side(2, bench.url, seconds, BATCH)
    meter.stop()
    jobs = sum(int(one["jobs"]) for one in found)
    stored = await bench.session.fetchval("select count(*) from foliot.runs")
    # The first call of each is a warm-up.
    if stored != jobs + 2 * BATCH:
        raise RuntimeError(f"{stored} jobs are stored, and {jobs + 2 * BATCH} were answered for")
    client_us = sum(one["cpu_seconds"] for one in found) / jobs * 1e6
    return {
        "per_second": jobs / max(one["seconds"] for one in found),
        **meter.microseconds(jobs),
        "client_us": client_us,
    }


async def _raw_singles(bench: Bench, seconds: float) -> float:
    """One row for each transaction, over the same number of connections."""
    await bench.session.execute(SCHEMA)
    try:
        return (await over_http.load("insert", bench.url, CALLERS, seconds))["per_second"]
    finally:
        await bench.session.execute("drop schema if exists yardstick cascade")
