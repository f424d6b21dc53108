"""A PostgreSQL with a standby, by streaming replication: two real servers on two ports."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

import asyncpg
import psutil
import pytest

from tests.support.ports import free_port
from tests.support.waiting import until

DEBIAN = Path("/usr/lib/postgresql")
NOBODY = 65534
PROGRAMS = ("initdb", "postgres", "pg_basebackup")
# Not durable: a killed process loses nothing that the kernel has, and no test switches the machine off.
SETTINGS = (
    "fsync = off\nmax_connections = 400\nmax_wal_size = 256MB\nwal_sender_timeout = 5s\nwal_receiver_timeout = 5s\n"
)


def programs() -> Path:
    """The directory of PostgreSQL's programs, which any user can run."""
    named = os.environ.get("TEST_PG_BIN")
    for directory in [Path(named)] if named else sorted(DEBIAN.glob("*/bin"), reverse=True):
        if all((directory / program).exists() for program in PROGRAMS):
            return directory
    pytest.skip("pg_basebackup is missing: install the Debian package postgresql")


class PostgresPair:
    """Every server is a child of this process, and of no other user than `nobody` where we are root."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._programs = programs()
        self._ports = {"first": free_port(), "second": free_port()}
        self._primary, self._standby = "first", "second"
        self._is_synchronous = False
        self._running: dict[str, Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """Of both servers: clients find the one that accepts writes."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports.values())
        return f"postgresql://foliot@{hosts}/postgres?sslmode=disable"

    @property
    def primary_port(self) -> int:
        return self._ports[self._primary]

    async def start(self, *, is_synchronous: bool) -> None:
        if os.getuid() == 0:
            os.chown(self._directory, NOBODY, NOBODY)
        self._is_synchronous = is_synchronous
        self._do(
            "initdb", "-D", self._primary, "-U", "foliot", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale", "C"
        )
        with (self._directory / self._primary / "postgresql.conf").open("a") as file:
            file.write(SETTINGS)
        await self.start_primary()
        await self.add_standby()

    async def add_standby(self) -> None:
        """A new standby, also after a promotion. It is synchronous if the pair is."""
        place = self._directory / self._standby
        shutil.rmtree(place, ignore_errors=True)
        await asyncio.to_thread(
            self._do, "pg_basebackup", "-D", self._standby, "-R", "--no-sync", "-c", "fast",
            "-d", f"host=127.0.0.1 port={self.primary_port} user=foliot application_name=standby",
        )  # fmt: skip
        # Once promoted, it must not wait for a standby that it does not have.
        settings = (place / "postgresql.auto.conf").read_text().splitlines(keepends=True)
        (place / "postgresql.auto.conf").write_text("".join(line for line in settings if "synchronous" not in line))
        await self.start_standby()
        if self._is_synchronous:
            async with self.session(self.primary_port) as sql:
                await sql.execute("alter system set synchronous_standby_names = 'standby'")
                await sql.execute("select pg_reload_conf()")
        await until(lambda: self._is_attached("sync" if self._is_synchronous else "async"))

    def kill_primary(self) -> None:
        self._kill(self._primary)

    async def start_primary(self) -> None:
        await self._start(self._primary)

    def kill_standby(self) -> None:
        self._kill(self._standby)

    async def start_standby(self) -> None:
        await self._start(self._standby)

    def signal_standby(self, number: signal.Signals) -> None:
        for process in self._tree(self._standby):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    async def promote(self) -> None:
        """Makes the standby the primary."""
        async with self.session(self._ports[self._standby]) as sql:
            # Without waiting: a query that waits may conflict with what the standby still replays.
            await sql.execute("select pg_promote(false)")
        await until(self._is_promoted)
        self._primary, self._standby = self._standby, self._primary

    def stop(self) -> None:
        for name in tuple(self._running):
            self._kill(name)

    @asynccontextmanager
    async def session(self, port: int | None = None) -> AsyncIterator[Any]:
        """On one server, or on the one that accepts writes."""
        url = self.url if port is None else f"postgresql://foliot@127.0.0.1:{port}/postgres?sslmode=disable"
        found = await asyncpg.connect(url, target_session_attrs="read-write" if port is None else "any", timeout=30)
        try:
            yield found
        finally:
            await found.close()

    async def _is_promoted(self) -> bool:
        with suppress(OSError, asyncpg.PostgresError):
            async with self.session(self._ports[self._standby]) as sql:
                return not await sql.fetchval("select pg_is_in_recovery()")
        return False

    async def _answers(self, port: int) -> bool:
        with suppress(OSError, asyncpg.PostgresError):
            async with self.session(port):
                return True
        return False

    async def _is_attached(self, state: str) -> bool:
        async with self.session(self.primary_port) as sql:
            found: bool = await sql.fetchval(
                "select exists (select from pg_stat_replication where state = 'streaming' and sync_state = $1)", state
            )
            return found

    def _do(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments], capture_output=True, text=True, check=False, **self._as()
        )
        assert done.returncode == 0, done.stderr

    async def _start(self, name: str) -> None:
        port = self._ports[name]
        command = [
            str(self._programs / "postgres"), "-D", name, "-p", str(port), "-c", "listen_addresses=127.0.0.1",
            "-c", f"unix_socket_directories={self._directory}",
        ]  # fmt: skip
        self._running[name] = Popen(command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, **self._as())
        await until(lambda: self._answers(port))

    def _as(self) -> dict[str, Any]:
        around: dict[str, Any] = {"cwd": self._directory, "start_new_session": True}
        return around | ({"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {})

    def _kill(self, name: str) -> None:
        for one in self._tree(name):
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self._running.pop(name).wait()

    def _tree(self, name: str) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            top = psutil.Process(self._running[name].pid)
            return [top, *top.children(recursive=True)]
        return []


@asynccontextmanager
async def postgres_pair(*, is_synchronous: bool) -> AsyncIterator[PostgresPair]:
    # Not in a directory of pytest, which other users can't reach.
    directory = Path(tempfile.mkdtemp(prefix="foliot-pair-"))
    pair = PostgresPair(directory)
    try:
        await pair.start(is_synchronous=is_synchronous)
        yield pair
    finally:
        await asyncio.to_thread(pair.stop)
        shutil.rmtree(directory, ignore_errors=True)
