"""Sets up a rival: installs it, creates its store, and starts its program.

Every program has the same commands: `prepare`, `enqueue JOBS PAYLOAD`, `delayed JOBS PAYLOAD INSTANT`, `pace JOBS
PAYLOAD` and `work`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from urllib.parse import parse_qs, unquote, urlsplit

from benchmarks import effects as effects_module
from benchmarks.bench import Bench
from benchmarks.effects import Effects
from benchmarks.rivals import redis
from benchmarks.rivals.installing import Unavailable, with_npm, with_pip

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


DRAMATIQ = Rival("dramatiq", ("dramatiq[redis,rabbitmq]",), needs_redis=True)
CELERY = Rival("celery", ("celery[redis]",), needs_redis=True)
BULLMQ = Rival("bullmq", ("bullmq", "ioredis"), is_node=True, needs_redis=True)
RIVALS = (
    Rival("graphile", ("graphile-worker",), is_quick=True, is_node=True),
    Rival("pgqueuer", ("pgqueuer", "asyncpg", "uvloop"), is_quick=True),
    Rival("procrastinate", ("procrastinate", "uvloop")),
    DRAMATIQ,
    CELERY,
)


@dataclass(frozen=True, slots=True)
class Stage:
    command: Sequence[str]
    environment: Mapping[str, str]
    store: int | None
    """The process that is PostgreSQL, or Redis."""

    async def say(self, *words: str) -> str:
        """Runs one command of its program, and returns the output."""
        program = await asyncio.create_subprocess_exec(
            *self.command, *words, env=self.environment, stdin=DEVNULL, stdout=PIPE
        )
        try:
            printed, _ = await program.communicate()
        finally:
            await _stop(program)
        if program.returncode != 0:
            raise Unavailable(f"its program ended with exit code {program.returncode}")
        return printed.decode()

    @asynccontextmanager
    async def working(self, effects: Effects, processes: int, *words: str) -> AsyncIterator[list[int]]:
        """Starts worker processes."""
        started: list[asyncio.subprocess.Process] = []
        try:
            for region in range(processes):
                environment = {**self.environment, **effects.variables(region)}
                program = await asyncio.create_subprocess_exec(
                    *self.command, *words, env=environment, stdin=DEVNULL, stdout=DEVNULL
                )
                started.append(program)
            yield [program.pid for program in started]
        finally:
            for program in started:
                await _stop(program)


@asynccontextmanager
async def on_stage(bench: Bench, rival: Rival) -> AsyncIterator[Stage]:
    """With a store of its own."""
    async with AsyncExitStack() as stack:
        if rival.needs_redis:
            url, pid = await stack.enter_async_context(redis.started(bench.directory))
            yield await stack.enter_async_context(broker_stage(bench, rival, url, pid))
        else:
            command = await _installed(rival)
            variables = await stack.enter_async_context(_database(bench, f"rival_{rival.name}"))
            stage = Stage(command, _environment(bench) | variables, bench.postmaster)
            await stage.say("prepare")
            yield stage


@asynccontextmanager
async def broker_stage(bench: Bench, rival: Rival, url: str, pid: int) -> AsyncIterator[Stage]:
    """On a broker that runs already."""
    command = await _installed(rival)
    yield Stage(command, _environment(bench) | {"BENCH_BROKER": url}, pid)


async def _installed(rival: Rival) -> list[str]:
    return await (with_npm if rival.is_node else with_pip)(rival.name, rival.packages)


def _environment(bench: Bench) -> dict[str, str]:
    shared = bench.directory / "shared"
    shared.mkdir(exist_ok=True)
    shutil.copy(effects_module.__file__, shared)
    return os.environ | {"PYTHONPATH": str(shared), "PYTHONWARNINGS": "ignore"}


async def until_more_than(effects: Effects, number: int, *, pause: float = 0.2) -> int:
    """Waits until more jobs than this have started, or until nothing happens any more, as when jobs are lost. Returns
    their number."""
    seen, changed = -1, monotonic()
    while (found := effects.started()) <= number:
        if found != seen:
            seen, changed = found, monotonic()
        elif monotonic() > changed + STALLED_SECONDS:
            break
        await asyncio.sleep(pause)
    return found


@asynccontextmanager
async def _database(bench: Bench, name: str) -> AsyncIterator[dict[str, str]]:
    """Creates a database on the same server, and returns the environment variables for it that every driver reads."""
    await bench.session.execute(f"drop database if exists {name} with (force)")
    await bench.session.execute(f"create database {name}")
    where = urlsplit(bench.url)
    asked = {key: values[0] for key, values in parse_qs(where.query).items()}
    try:
        yield {
            "PGHOST": asked.get("host") or where.hostname or "127.0.0.1",
            "PGPORT": str(asked.get("port") or where.port or 5432),
            "PGUSER": unquote(where.username or "postgres"),
            "PGPASSWORD": unquote(where.password or ""),
            "PGDATABASE": name,
        }
    finally:
        await bench.session.execute(f"drop database if exists {name} with (force)")


async def _stop(program: asyncio.subprocess.Process) -> None:
    if program.returncode is None:
        program.terminate()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await program.wait()
    except TimeoutError:
        program.kill()
        await program.wait()
