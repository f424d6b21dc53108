"""Submitting from a program that has PostgreSQL at hand: one by one, many callers at once, and in bulk, beside the same in bare SQL."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from time import perf_counter, process_time

from benchmarks import over_http, raw_sql
from benchmarks.bench import Bench
from benchmarks.bulk_client import side_by_side
from benchmarks.cpu import Meter
from benchmarks.raw_sql import PAYLOAD, SCHEMA
from benchmarks.report import Result, Row, at_least, spread_ms
from benchmarks.tasks import noop
from foliot import App
from foliot.model.ids import new_id
from foliot.model.run import NewRun

NAME = "submit"
TITLE = "jobs submitted in process, straight to PostgreSQL"
CALLERS = 64
BATCH = 1000
Submit = Callable[[], Awaitable[object]]


async def measure(bench: Bench) -> Result:
    jobs, seconds = bench.size(40_000, full=200_000, tiny=2000), bench.size(3, full=15, tiny=1)
    app = App(url=bench.url)
    task, payload = app.task(noop.function), json.loads(PAYLOAD)

    async def single() -> None:
        await task.submit_async(**payload)

    async def bulk() -> None:
        await task.submit_many_async([payload] * BATCH)

    # Made beforehand, as the rows of raw SQL are.
    runs = [NewRun(id=new_id(), task="noop", queue="default", payload=PAYLOAD) for _ in range(jobs + BATCH)]

    async def through_the_store() -> None:
        await bench.store.runs.insert_runs(runs[-BATCH:])
        del runs[-BATCH:]

    try:
        before, raw_before = await raw_sql.limit(bench, jobs), await _raw_singles(bench, seconds)
        alone = await _timed(bench, single, callers=1, seconds=seconds)
        many = await _timed(bench, single, callers=CALLERS, seconds=seconds)
        in_bulk = await _timed(bench, bulk, callers=1, seconds=seconds, jobs_a_call=BATCH)
        two_programs = await _two_programs(bench, seconds)
        stored = await _timed(bench, through_the_store, callers=1, seconds=60, jobs_a_call=BATCH, calls=jobs // BATCH)
        after, raw_after = await raw_sql.limit(bench, jobs), await _raw_singles(bench, seconds)
    finally:
        await asyncio.to_thread(app.close)
    raw_single, raw_bulk = (raw_before + raw_after) / 2, raw_sql.mean(before, after).insert_per_second

    def row(name: str, found: dict[str, float], raw: float | None) -> Row:
        beside = {} if raw is None else {"raw_sql": raw, "ratio": found["per_second"] / raw}
        return Row(name, {"per_second": found["per_second"], **beside, **found})

    return Result(
        [
            row("single, one caller after the other", alone, None),
            row(f"single, {CALLERS} callers at once", many, raw_single),
            row(f"bulk, {BATCH:,} a call (`submit_many`), one after the other", in_bulk, raw_bulk),
            row(f"bulk, {BATCH:,} a call, two programs", two_programs, raw_bulk),
            row(f"bulk, {BATCH:,} a call, inside Foliot", stored, raw_bulk),
        ],
        [
            at_least("single jobs a second in process", many["per_second"], 3000),
            at_least("bulk, inside Foliot: share of raw inserts", stored["per_second"] / raw_bulk, 0.7),
            at_least("bulk, two programs: share of raw inserts", two_programs["per_second"] / raw_bulk, 0.7),
        ],
        {"seconds": seconds},
        [
            "client us: the CPU time of the program that submits",
            "percentiles are of one call",
            "raw SQL in bulk: one connection, one payload for all rows; one caller of ours waits while PostgreSQL works, and the reverse",
        ],
    )


async def _timed(
    bench: Bench, submit: Submit, *, callers: int, seconds: float, jobs_a_call: int = 1, calls: int | None = None
) -> dict[str, float]:
    await bench.empty()
    # Connecting is no part of it.
    await submit()
    latencies: list[float] = []
    meter = Meter({"postgres": [bench.postmaster]})
    meter.start()
    began, own = perf_counter(), process_time()

    async def one_after_another() -> None:
        while (asked := perf_counter()) < began + seconds and (calls is None or len(latencies) < calls):
            await submit()
            latencies.append(perf_counter() - asked)

    await asyncio.gather(*(one_after_another() for _ in range(callers)))
    took, own = perf_counter() - began, process_time() - own
    meter.stop()
    stored, jobs = await bench.session.fetchval("select count(*) from foliot.runs"), len(latencies) * jobs_a_call
    if stored != jobs + jobs_a_call:
        raise RuntimeError(f"{stored} jobs are stored, and {jobs + jobs_a_call} were answered for")
    return {"per_second": jobs / took, **spread_ms(latencies), **meter.microseconds(jobs), "client_us": own / jobs * 1e6}


async def _two_programs(bench: Bench, seconds: float) -> dict[str, float]:
    await bench.empty()
    meter = Meter({"postgres": [bench.postmaster]})
    meter.start()
    found = await side_by_side(2, bench.url, seconds, BATCH)
    meter.stop()
    jobs = sum(int(one["jobs"]) for one in found)
    stored = await bench.session.fetchval("select count(*) from foliot.runs")
    # One call of each is a warming-up.
    if stored != jobs + 2 * BATCH:
        raise RuntimeError(f"{stored} jobs are stored, and {jobs + 2 * BATCH} were answered for")
    client_us = sum(one["cpu_seconds"] for one in found) / jobs * 1e6
    return {"per_second": jobs / max(one["seconds"] for one in found), **meter.microseconds(jobs), "client_us": client_us}


async def _raw_singles(bench: Bench, seconds: float) -> float:
    """One row a transaction, by as many connections."""
    await bench.session.execute(SCHEMA)
    try:
        return (await over_http.load("insert", bench.url, CALLERS, seconds))["per_second"]
    finally:
        await bench.session.execute("drop schema if exists yardstick cascade")
