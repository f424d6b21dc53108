"""Foliot and its rivals drain the same no-op jobs, one after the other on the same machine, with one and with two worker processes.

Nobody is believed: each job writes into shared memory that it has started, so what is lost or done twice shows. Jobs are queued first;
jobs a second are counted from the first start to the last, with the processes of all started cold.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from urllib.parse import parse_qs, unquote, urlsplit

from benchmarks import effects as effects_module
from benchmarks import raw_sql
from benchmarks.bench import Bench
from benchmarks.cpu import Meter
from benchmarks.draining import SLOTS, submit
from benchmarks.effects import Effects
from benchmarks.raw_sql import PAYLOAD
from benchmarks.report import Figure, Goal, Result, Row, at_least
from benchmarks.rivals import redis
from benchmarks.rivals.installing import Unavailable, with_npm, with_pip

NAME = "rivals"
TITLE = "no-op jobs queued first, then worked off by Foliot and by others"
STALLED_SECONDS = 30.0
STOP_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Rival:
    name: str
    packages: tuple[str, ...]
    is_quick: bool = False
    """More than ten thousand jobs a second can be expected of it."""
    is_node: bool = False
    needs_redis: bool = False


RIVALS = (
    Rival("graphile", ("graphile-worker",), is_quick=True, is_node=True),
    Rival("pgqueuer", ("pgqueuer", "asyncpg", "uvloop"), is_quick=True),
    Rival("procrastinate", ("procrastinate", "uvloop")),
    Rival("dramatiq", ("dramatiq[redis]",), needs_redis=True),
    Rival("celery", ("celery[redis]",), needs_redis=True),
)


async def measure(bench: Bench) -> Result:
    quick, slow = bench.size(40_000, full=100_000, tiny=500), bench.size(3000, full=10_000, tiny=100)
    shared = bench.directory / "shared"
    shared.mkdir(exist_ok=True)
    shutil.copy(effects_module.__file__, shared)
    rows, notes = [], []
    before = await raw_sql.limit(bench, quick)
    rows += [await _foliot(bench, quick, processes) for processes in (1, 2)]
    for rival in RIVALS:
        try:
            rows += [await _rival(bench, rival, quick if rival.is_quick else slow, processes) for processes in (1, 2)]
        except Unavailable as error:
            notes.append(f"{rival.name} was left out: {error}")
    raw = raw_sql.mean(before, await raw_sql.limit(bench, quick)).drain_per_second
    shown = [Row(row.name, {**row.figures, "of_raw_sql": (row.figures["per_second"] or 0) / raw}) for row in rows]
    return Result(shown, _goals(rows), {"jobs": quick, "jobs_of_the_slow": slow}, notes)


def _goals(rows: Sequence[Row]) -> list[Goal]:
    found = {row.name: row.figures["per_second"] for row in rows}
    ours = found["foliot, 2"]
    wanted = (("graphile, 2", 1.1), ("pgqueuer, 2", 1.5))
    ratios = [(name, bound, _ratio(ours, found.get(name))) for name, bound in wanted]
    return [at_least(f"Foliot by {name} processes", ratio, bound) for name, bound, ratio in ratios]


def _ratio(ours: Figure, theirs: Figure) -> Figure:
    return None if not ours or not theirs else ours / theirs


async def _foliot(bench: Bench, jobs: int, processes: int) -> Row:
    await bench.empty()
    payload = json.loads(PAYLOAD)
    await submit(bench, jobs, task="counted", payload=lambda number: json.dumps({**payload, "number": number}))
    await bench.session.execute("vacuum analyze foliot.runs")
    command = [sys.executable, "-m", "foliot", "worker", "benchmarks.tasks:app", "--queue", f"default={SLOTS}"]
    environment = os.environ | {"FOLIOT_DATABASE_URL": bench.url, "FOLIOT_LOG_LEVEL": "warning"}
    return await _drained(bench, f"foliot, {processes}", command, environment, jobs, processes, bench.postmaster)


async def _rival(bench: Bench, rival: Rival, jobs: int, processes: int) -> Row:
    command = await (with_npm if rival.is_node else with_pip)(rival.name, rival.packages)
    environment = os.environ | {"PYTHONPATH": str(bench.directory / "shared")}
    async with AsyncExitStack() as stack:
        store = bench.postmaster
        if rival.needs_redis:
            url, store = await stack.enter_async_context(redis.started(bench.directory))
            environment |= {"BENCH_REDIS": url}
        else:
            environment |= await stack.enter_async_context(_database(bench, f"rival_{rival.name}"))
            await _finish(await _start([*command, "prepare"], environment))
        await _finish(await _start([*command, "enqueue", str(jobs), PAYLOAD], environment))
        return await _drained(bench, f"{rival.name}, {processes}", [*command, "work"], environment, jobs, processes, store)


async def _drained(
    bench: Bench, name: str, command: Sequence[str], environment: Mapping[str, str], jobs: int, processes: int, store: int | None
) -> Row:
    effects = Effects(bench.directory / "effects", jobs, processes)
    started = [await _start(command, {**environment, **effects.variables(region)}) for region in range(processes)]
    try:
        meter = Meter({"store": [store], "worker": [process.pid for process in started]})
        before = await _until_more_than(effects, 0)
        # Not the start of Python or Node: from the first jobs on.
        meter.start()
        await _until_more_than(effects, jobs - 1)
        meter.stop()
    finally:
        for process in started:
            await _stop(process)
    found = effects.count()
    figures = {"per_second": len(found.started) / found.seconds, "lost": found.lost, "doubled": found.doubled}
    return Row(name, {**figures, **meter.microseconds(max(1, len(found.started) - before))})


async def _until_more_than(effects: Effects, number: int) -> int:
    """How many have started then; or when nothing more happens."""
    seen, changed = -1, monotonic()
    while (found := effects.started()) <= number:
        if found != seen:
            seen, changed = found, monotonic()
        elif monotonic() > changed + STALLED_SECONDS:
            break
        await asyncio.sleep(0.02 if number == 0 else 0.2)
    return found


@asynccontextmanager
async def _database(bench: Bench, name: str) -> AsyncIterator[dict[str, str]]:
    """A database of its own on the same server; as the variables that every driver reads."""
    await bench.session.execute(f"drop database if exists {name} with (force)")
    await bench.session.execute(f"create database {name}")
    where = urlsplit(bench.url)
    asked = {key: values[0] for key, values in parse_qs(where.query).items()}
    variables = {
        "PGHOST": asked.get("host") or where.hostname or "127.0.0.1",
        "PGPORT": str(asked.get("port") or where.port or 5432),
        "PGUSER": unquote(where.username or "postgres"),
        "PGPASSWORD": unquote(where.password or ""),
        "PGDATABASE": name,
    }
    try:
        yield variables
    finally:
        await bench.session.execute(f"drop database if exists {name} with (force)")


async def _start(command: Sequence[str], environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(*command, env=environment, stdin=DEVNULL, stdout=DEVNULL)


async def _finish(process: asyncio.subprocess.Process) -> None:
    if await process.wait() != 0:
        raise Unavailable(f"its program ended with exit code {process.returncode}")


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
