"""Many recurring and delayed jobs due in the same second, next to others that are not: when the last of them is
ready."""

from __future__ import annotations

from benchmarks.bench import Bench
from benchmarks.processes import scheduler
from benchmarks.report import Result, Row
from benchmarks.schedules import EVERY_HOUR, TOMORROW, insert_delayed, insert_jobs, last_ready

NAME = "fire_burst"
TITLE = "many jobs due in one second next to many that are not, one scheduler node: until the last is ready"


async def measure(bench: Bench) -> Result:
    stored = bench.size(100_000, full=1_000_000, tiny=1000)
    recurring, delayed = bench.size(20_000, full=20_000, tiny=100), bench.size(50_000, full=50_000, tiny=100)
    await insert_jobs(bench, "far", EVERY_HOUR, stored, TOMORROW)
    await bench.session.execute("vacuum analyze foliot.jobs")
    async with scheduler(bench):
        await insert_jobs(bench, "due", EVERY_HOUR, recurring, 4.0)
        recurring_seconds = await last_ready(bench, recurring)
    await bench.empty()
    await insert_delayed(bench, stored, TOMORROW)
    await bench.session.execute("vacuum analyze foliot.runs")
    async with scheduler(bench):
        await insert_delayed(bench, delayed, 4.0)
        delayed_seconds = await last_ready(bench, delayed)
    return Result(
        [
            Row(
                f"{recurring:,} recurring",
                {"last_ready_seconds": recurring_seconds, "per_second": recurring / recurring_seconds},
            ),
            Row(
                f"{delayed:,} delayed", {"last_ready_seconds": delayed_seconds, "per_second": delayed / delayed_seconds}
            ),
        ],
        settings={"stored_beside": stored},
    )
