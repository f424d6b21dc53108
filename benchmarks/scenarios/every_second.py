"""Recurring jobs due every second on one scheduler node: how many of their ticks became runs, and how late."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.cpu import Meter
from benchmarks.processes import scheduler
from benchmarks.report import Result, Row, at_least, at_most
from benchmarks.schedules import EVERY_SECOND, insert_jobs

NAME = "every_second"
TITLE = "recurring jobs, each every second, on one scheduler node: from the tick to its run being ready"
LAG = """
select count(*), count(distinct (job_id, tick_at)),
    percentile_cont(array[0.5, 0.99, 0.999, 1.0]) within group (order by lag), avg((lag <= 100)::int)::float8
from (
    select job_id, tick_at, extract(epoch from pg_xact_commit_timestamp(xmin) - tick_at)::float8 * 1000 as lag
    from foliot.runs where job_id is not null and tick_at > $1 and tick_at <= $2
) as fires
"""


async def measure(bench: Bench) -> Result:
    jobs, seconds = bench.size(1000, full=1000, tiny=20), bench.size(60, full=60, tiny=2)
    await insert_jobs(bench, "every", EVERY_SECOND, jobs, 2.0)
    await bench.session.execute("vacuum analyze foliot.jobs")
    async with scheduler(bench) as node:
        # The first seconds are a warm-up.
        begin = await bench.session.fetchval("select date_trunc('second', now()) + interval '3 seconds'")
        end = await bench.session.fetchval("select $1::timestamptz + make_interval(secs => $2)", begin, float(seconds))
        await bench.session.fetchval("select pg_sleep(extract(epoch from $1::timestamptz - clock_timestamp()))", begin)
        meter = Meter({"postgres": [bench.postmaster], "scheduler": [node]})
        meter.start()
        # Waits one more second for the last ticks to commit.
        await bench.session.fetchval(
            "select pg_sleep(extract(epoch from $1::timestamptz - clock_timestamp()) + 1)", end
        )
        meter.stop()
        count, distinct, (p50, p99, p999, worst), within = await bench.session.fetchrow(LAG, begin, end)
    if count != distinct:
        raise RuntimeError(f"{count - distinct} ticks fired twice")
    share = count / (jobs * seconds)
    figures = {
        "fired_share": share,
        "within_100_ms": within,
        "p50_ms": p50,
        "p99_ms": p99,
        "p999_ms": p999,
        "max_ms": worst,
    }
    return Result(
        [Row(f"{jobs:,} jobs every second", {**figures, **meter.microseconds(jobs * (seconds + 1))})],
        [at_least("share of ticks that fired", share, 1.0), at_most("lag p99, ms", p99, 50)],
        {"jobs": jobs, "seconds": seconds},
        ["microseconds are those of one tick"],
    )
