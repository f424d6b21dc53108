"""One chaos run: a cluster, a load and a nemesis, then quiet, the history and the checker's verdict."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from tests.chaos.checker.history import Settings
from tests.chaos.cluster import ALONE, APP, GRACE_SECONDS, LOST_ATTEMPTS_MAX, Cluster, Surroundings
from tests.chaos.load import Load
from tests.chaos.machine import Machine
from tests.chaos.nemesis import Nemesis
from tests.chaos.recorder import Journal, bring_together, clock_offset, monotonic_us

QUIET_SECONDS = 60.0
"""Everything due must have ended by then."""
SAMPLE_SECONDS = 2.0
SETTLE_LOOK_SECONDS = 0.5
# Later runs belong to the recurring jobs, which have their own time.
DUE = """
select count(*) from foliot.runs
where created_at < to_timestamp($1::bigint / 1000000.0) and (state <> 'scheduled'
    or due_at < clock_timestamp() - interval '3 seconds')
"""


@dataclass(frozen=True, slots=True)
class Plan:
    directory: Path
    seed: int
    minutes: float
    rate: float
    only: list[str] = field(default_factory=list)
    """The faults to inject; empty means all."""
    every_seconds: float = 6.0
    """Between two faults, on average."""
    at_once: int = 1
    """Faults that are active side by side."""
    schedulers: int = 2
    workers: int = 3
    app: str = APP
    surroundings: Surroundings = ALONE


async def run(plan: Plan, tell: Callable[[str], None]) -> None:
    """Leaves the history in the plan's directory."""
    journal = Journal(plan.directory)
    # The rows that a run leaves in the database, with a margin.
    disk_bytes = int(700e6 + plan.minutes * 60 * plan.rate * 6000)
    cluster = Cluster(
        plan.directory, say=tell, disk_bytes=disk_bytes, schedulers=plan.schedulers, workers=plan.workers, app=plan.app,
        surroundings=plan.surroundings,
    )  # fmt: skip
    async with cluster:
        await cluster.started()
        tell("the cluster is up")
        offset = clock_offset()
        load = Load(cluster.servers, journal, seed=plan.seed, rate=plan.rate)
        nemeses = [Nemesis(cluster, journal, seed=plan.seed + number, say=tell) for number in range(plan.at_once)]
        is_over, is_load_over = asyncio.Event(), asyncio.Event()
        loading = asyncio.create_task(load.run(is_load_over), name="load")
        troubling = asyncio.gather(
            *(one.run(is_over, only=plan.only, every_seconds=plan.every_seconds) for one in nemeses)
        )
        peaks: dict[str, int] = {}
        machine = Machine(os.getpid())
        end_at = time.monotonic() + plan.minutes * 60
        while time.monotonic() < end_at and not loading.done() and not troubling.done():
            await asyncio.sleep(SAMPLE_SECONDS)
            journal.write("taken", machine.sample())
            for sample in cluster.measure_memory():
                journal.write("memory", sample)
                peaks[sample.target] = max(peaks.get(sample.target, 0), sample.bytes >> 20)
        is_over.set()
        await troubling
        is_load_over.set()
        await loading
        quiet_at = monotonic_us()
        tell(f"quiet: {load.acknowledged} requests acknowledged, {load.unanswered} unanswered, {load.refused} refused")
        await settle(cluster, quiet_at + offset, tell, machine, journal)
        # From now on, nothing has to be handled.
        ended_at = monotonic_us() + offset
        await cluster.stop()
        journal.close()
        async with cluster.session() as sql:
            settings = Settings(
                seed=plan.seed,
                quiet_at=quiet_at + offset,
                ended_at=ended_at,
                lost_attempts_max=LOST_ATTEMPTS_MAX,
                grace_seconds=GRACE_SECONDS,
                has_broker=plan.surroundings.dispatch != "postgres",
                has_coordinator=plan.surroundings.coordination != "postgres",
            )
            await bring_together(sql, plan.directory, settings, offset)
        for ended in cluster.ended:
            tell(f"by itself: {ended}")
        tell(f"faults: {dict(sum((Counter(one.counts) for one in nemeses), Counter()))}; MB at the most: {peaks}")


async def settle(
    cluster: Cluster, quiet_at: int, tell: Callable[[str], None], machine: Machine, journal: Journal
) -> None:
    """Waits until everything that was due has ended. The time that others take from us does not count."""
    began, left, taken = time.monotonic(), -1, 0.0
    while time.monotonic() < began + QUIET_SECONDS + 5 + taken:
        sample = machine.sample()
        taken += sample.seconds
        journal.write("taken", sample)
        with suppress(OSError, asyncpg.PostgresError, TimeoutError):
            async with cluster.session() as sql:
                if left < 0:
                    await sql.execute("delete from foliot.pauses")
                left = await sql.fetchval(DUE, quiet_at)
                if left == 0:
                    break
        await asyncio.sleep(SETTLE_LOOK_SECONDS)
    tell(f"{left} runs are left that are due, {time.monotonic() - began:.1f} s after the last fault")


def any_seed() -> int:
    return random.SystemRandom().randrange(1, 1 << 31)
