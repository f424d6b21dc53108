"""Embedded PostgreSQL servers in tests: starting, looking and asking."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from foliot.clock import SystemClock
from foliot.embedded import EmbeddedPostgres
from foliot.embedded.binaries import find_binaries
from tests.support.waiting import PATIENCE_SECONDS

FAST = {"fsync": "off"}


NOBODY = 65534


NAMELESS = 54321


SOURCES = Path(__file__).parents[2] / "src"


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


# An owner in a process of its own: says the URL, or why not; stops when its stdin ends.
OWNER = """
import asyncio, sys
from pathlib import Path
from foliot.clock import SystemClock
from foliot.embedded import EmbeddedPostgres
from foliot.errors import EmbeddedPostgresError

async def main():
    postgres = EmbeddedPostgres(Path(sys.argv[1]), clock=SystemClock(), binaries=sys.argv[2], settings={"fsync": "off"})
    try:
        print(await postgres.start(), flush=True)
    except EmbeddedPostgresError as error:
        sys.exit("refused: " + error.detail)
    await asyncio.to_thread(sys.stdin.read)
    await postgres.stop()

asyncio.run(main())
"""


@contextlib.contextmanager
def borrowed(made_once: Path, place: Path) -> Iterator[Path]:
    shutil.move(made_once, place)
    try:
        yield place
        assert processes_of(place) == []
    finally:
        shutil.move(place, made_once)


def handle(directory: Path, **settings: str) -> EmbeddedPostgres:
    return EmbeddedPostgres(directory, clock=SystemClock(), settings=FAST | settings)


@contextlib.asynccontextmanager
async def running(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    try:
        yield await postgres.start()
    finally:
        await postgres.stop()


@contextlib.contextmanager
def owner_process(
    directory: Path, *, python: str = sys.executable, script: str = OWNER, user: int | None = None, binaries: str = ""
) -> Iterator[subprocess.Popen[str]]:
    binaries = binaries or str(find_binaries("", Path("/no/such/data")).directory)
    paths = [str(SOURCES), *(path for path in sys.path if path.endswith("site-packages"))]
    process = subprocess.Popen(
        [python, "-c", script, str(directory), binaries],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": "1"},
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def refusal(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=PATIENCE_SECONDS)[1]


def processes_of(directory: Path) -> list[int]:
    """Every process that works in the data directory, or was started on it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            at_work = process.cwd() == str(directory / "postgres") or str(directory / "postgres") in process.cmdline()
            if at_work and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


async def until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def fetch(url: str, query: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()
