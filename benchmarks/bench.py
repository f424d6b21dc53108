"""The environment of every scenario: a PostgreSQL with fixed settings, a session to it, and the scale.

The server is an embedded one with a gigabyte of shared buffers, and every commit is on disk before it is answered.
`--url` names another.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import psutil

from benchmarks.disk import Disk
from benchmarks.tasks import app
from foliot.clock import SystemClock
from foliot.config import Config
from foliot.embedded import EmbeddedPostgres
from foliot.events import EventBus
from foliot.store.store import Store, open_store

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "1GB",
    "max_connections": "500",
    # The commit time of its transaction tells when a run became visible.
    "track_commit_timestamp": "on",
}
EMPTY = """
truncate foliot.jobs, foliot.job_versions, foliot.job_dependencies, foliot.ticks, foliot.runs, foliot.history,
    foliot.attempts, foliot.logs,
    foliot.parents, foliot.dependencies, foliot.links, foliot.pauses, foliot.rate_starts, foliot.circuits;
delete from foliot.workers where expires_at < clock_timestamp()
"""


@dataclass(frozen=True, slots=True)
class Bench:
    url: str
    session: Any
    store: Store
    is_full: bool
    directory: Path
    """For files of a scenario."""
    disk: Disk
    postmaster: int | None
    """None: PostgreSQL runs on another machine, or out of sight."""
    is_tiny: bool = False
    """As small as it still works: for tests."""

    def size(self, usual: int, *, full: int, tiny: int) -> int:
        return tiny if self.is_tiny else full if self.is_full else usual

    async def empty(self) -> None:
        """Removes the data of the previous scenario."""
        await self.session.execute(EMPTY)

    async def settle(self) -> None:
        """Flushes everything to disk if this is our own server, and waits until the disk is as fast as before."""
        with suppress(asyncpg.InsufficientPrivilegeError):
            await self.session.execute("checkpoint")
        await self.disk.rested()


@asynccontextmanager
async def opened(url: str | None, *, is_full: bool, is_tiny: bool = False) -> AsyncIterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as name:
        directory = Path(name)
        disk = Disk(directory)
        if url is not None:
            async with _connected(url, is_full, directory, disk, is_tiny) as bench:
                yield bench
            return
        server = EmbeddedPostgres(directory / "server", clock=SystemClock(), settings=SETTINGS)
        try:
            async with _connected(await server.start(), is_full, directory, disk, is_tiny) as bench:
                yield bench
        finally:
            await server.stop()


@asynccontextmanager
async def twin(bench: Bench) -> AsyncIterator[Bench]:
    """Another database of the same server with empty tables of Foliot's, so that both can be measured in turns."""
    parts = urlsplit(bench.url)
    name = f"{parts.path.removeprefix('/') or 'postgres'}_twin"
    await bench.session.execute(f'drop database if exists "{name}" with (force)')
    await bench.session.execute(f'create database "{name}"')
    try:
        url = urlunsplit(parts._replace(path=f"/{name}"))
        async with _connected(url, bench.is_full, bench.directory, bench.disk, bench.is_tiny) as found:
            yield found
    finally:
        await bench.session.execute(f'drop database "{name}" with (force)')


def in_turns(one: Bench, other: Bench, times: int) -> list[Bench]:
    """Alternates between the two, because on a shared machine the same measurement differs by a quarter within
    minutes."""
    return [bench for turn in range(times) for bench in ((other, one) if turn % 2 == 0 else (one, other))]


@asynccontextmanager
async def _connected(url: str, is_full: bool, directory: Path, disk: Disk, is_tiny: bool) -> AsyncIterator[Bench]:
    async with open_store(url, config=Config(), clock=SystemClock(), events=EventBus(), part="bench") as store:
        await store.migrate()
        # Submitting refuses tasks that no worker has ever announced.
        await store.workers.announce_tasks({name: task.queue for name, task in app.tasks.items()})
        session = await asyncpg.connect(url, command_timeout=1800)
        try:
            yield Bench(url, session, store, is_full, directory, disk, await _postmaster(session), is_tiny)
        finally:
            await session.close()


async def _postmaster(session: Any) -> int | None:
    """The parent of the session's server process, if it runs on this machine."""
    backend = await session.fetchval("select pg_backend_pid()")
    try:
        process = psutil.Process(backend)
        parent = process.parent()
        return parent.pid if parent is not None and "postgres" in process.name() else None
    except psutil.NoSuchProcess:
        return None
