"""Single jobs by `POST /v1/jobs`: at a fixed rate that does not wait for responses, and as fast as 64 connections
allow."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks import over_http
from benchmarks.bench import Bench
from benchmarks.cpu import Meter
from benchmarks.report import Result, Row, at_least, at_most

NAME = "http"
TITLE = "single jobs by POST /v1/jobs; latency counts from when a request was due"
SHOWN = ("p50_ms", "p95_ms", "p99_ms", "max_ms")


async def measure(bench: Bench) -> Result:
    rate, seconds = bench.size(1000, full=1000, tiny=50), bench.size(8, full=30, tiny=1)
    found = await over_http.measure(bench.url, rate=rate, seconds=seconds)
    paced, closed, raw = found["paced"], found["closed"], found["raw_sql"]
    cost = await _cost(bench, rate, seconds / 2)

    def row(name: str, one: Mapping[str, float], per_second: float, **more: float) -> Row:
        return Row(name, {"per_second": per_second, **{share: one[share] for share in SHOWN}, **more})

    ratio = closed["per_second"] / raw["per_second"]
    return Result(
        [
            row(f"{rate:,} a second, whatever is answered", paced, paced["sent_per_second"], **cost),
            row("64 connections", closed, closed["per_second"], raw_sql=raw["per_second"], ratio=ratio),
            row("64 connections, raw SQL", raw, raw["per_second"]),
        ],
        [
            at_least("single jobs a second over HTTP", closed["per_second"], 3000),
            at_most(f"p95 at {rate:,} a second, ms", paced["p95_ms"], 30),
        ],
        {"rate": rate, "seconds": seconds},
    )


async def _cost(bench: Bench, rate: int, seconds: float) -> dict[str, float]:
    """The CPU time for each job at that rate, in microseconds."""
    await bench.empty()
    async with over_http.server(bench.url) as (address, process):
        meter = Meter({"postgres": [bench.postmaster], "api": [process.pid]})
        meter.start()
        await over_http.load("open", address, rate, seconds)
        meter.stop()
        return meter.microseconds(await bench.session.fetchval("select count(*) from foliot.runs"))
