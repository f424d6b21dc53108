"""Runs a PostgreSQL server in a directory, as a child of this process.

    DIRECTORY/owner.lock   flock held by the owner, with its pid: one owner at a time
    DIRECTORY/postgres     the data; made elsewhere and renamed when complete, so it is whole or absent
    DIRECTORY/run          the socket, or a link to where it is when this path is too long for one
    DIRECTORY/url          how guests (other processes of the same user) connect; there while the server runs
    DIRECTORY/log          what PostgreSQL says

Only a unix socket is opened; the 0700 directories are the guard, so there is no password. Commits are durable. The
server dies with its owner (Linux: the kernel sees to it); where it did not, the next owner stops it before starting its
own.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from foliot.clock import Clock
from foliot.embedded.binaries import Binaries, find_binaries, made_by
from foliot.embedded.child import Child, Log
from foliot.embedded.directory import (
    PORT,
    SOCKET_NAME,
    clear_socket_directory,
    explain,
    make_private,
    make_socket_directory,
    make_unfinished,
    move_into_place,
    remove_unfinished,
    write_private,
)
from foliot.embedded.postmaster import POLL_SECONDS, STOP_STEPS, end_leftovers, is_ready, recorded_pid
from foliot.errors import EmbeddedPostgresError

READY_SECONDS = 120.0
FULL_DISK_BYTES = 32_000_000
PASSED = frozenset({"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "TZDIR"})
PASSED_PREFIXES = ("LD_", "DYLD_", "NSS_WRAPPER_")
"""Libraries, and names of users, that the machine keeps in unusual places."""

DEFAULT_SETTINGS = {
    "max_connections": "200",
    "shared_buffers": "256MB",
    "wal_buffers": "16MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "jit": "off",
    "random_page_cost": "1.1",
    "autovacuum_naptime": "10s",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class EmbeddedPostgres:
    """The owner's handle. Start it from the main thread: the kernel stops the server when the thread that started it
    ends."""

    def __init__(
        self, directory: Path, *, clock: Clock, binaries: str = "", settings: Mapping[str, str] | None = None
    ) -> None:
        self.directory = directory.resolve()
        self.data = self.directory / "postgres"
        # Set when the server ends without having been asked to; `start` brings it back and clears this.
        self.exited = asyncio.Event()
        self._clock = clock
        self._named_binaries = binaries
        self._settings = DEFAULT_SETTINGS | dict(settings or {})
        self._log = Log(self.directory / "log" / "postgres.log")
        self._changing = asyncio.Lock()
        self._lock: int | None = None
        self._server: Child | None = None
        self._url = ""

    async def start(self) -> str:
        """Returns the URL of the database `foliot` once it accepts connections."""
        async with self._changing:
            if self._server is not None and not self._server.ended.is_set():
                return self._url
            try:
                self._url = await self._start()
            except OSError as error:
                await self._stop()
                raise EmbeddedPostgresError(explain(error, self.directory)) from error
            except BaseException:
                await self._stop()
                raise
            return self._url

    async def stop(self) -> None:
        async with self._changing:
            await self._stop()

    async def _start(self) -> str:
        self.exited.clear()
        self._server, self._url = None, ""
        make_private(self.directory)
        self._take_lock()
        make_private(self._log.path.parent)
        self._log.open_new_chapter()
        binaries = find_binaries(self._named_binaries, self.data)
        remove_unfinished(self.directory)
        await end_leftovers(self.data, self._clock)
        if made_by(self.data) is None:
            await self._make_data(binaries)
        sockets = make_socket_directory(self.directory)
        stale = recorded_pid(self.data)
        self._server = self._spawn(self._command(binaries, sockets), self.data, sockets, stale=stale)
        await self._wait_until_ready(self._server)
        url = f"postgresql://foliot@/foliot?host={quote(str(sockets))}&port={PORT}"
        write_private(self.directory / "url", url)
        return url

    async def _stop(self) -> None:
        if self._server is not None:
            await self._server.end(self._clock, STOP_STEPS)
            self._server = None
        if self._lock is not None:
            (self.directory / "url").unlink(missing_ok=True)
            clear_socket_directory(self.directory)
            os.ftruncate(self._lock, 0)
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> None:
        path = self.directory / "owner.lock"
        if self._lock is not None:
            if path.exists() and os.path.samestat(path.stat(), os.fstat(self._lock)):
                return
            # Somebody removed the directory under us: what we hold guards nothing any more.
            os.close(self._lock)
            self._lock = None
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(lock, 20, 0).decode("ascii", "replace").strip()
            os.close(lock)
            raise EmbeddedPostgresError(
                f"{self.directory} is in use by {f'process {owner}' if owner else 'another process'}: "
                "stop that one, or set FOLIOT_DATA to another directory"
            ) from None
        except OSError:
            os.close(lock)
            raise
        self._lock = lock
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)

    async def _make_data(self, binaries: Binaries) -> None:
        if self.data.is_dir() and any(self.data.iterdir()):
            raise EmbeddedPostgresError(
                f"{self.data} holds files but no PostgreSQL data: move them away, or set FOLIOT_DATA to another "
                f"directory"
            )
        data = make_unfinished(self.directory)
        durable = self._settings.get("fsync") != "off"
        initdb = [binaries.initdb, "-D", str(data), "-U", "foliot", "-E", "UTF8", "--locale=C", "--data-checksums"]
        initdb += ["--auth-local=trust", "--auth-host=reject", *([] if durable else ["--no-sync"])]
        single = [binaries.postgres, "--single", "-D", str(data), "-c", "exit_on_error=on", "template1"]
        try:
            await self._run(initdb, data)
            await self._run(single, data, typed=b"create database foliot\n")
            move_into_place(data, self.data)
        finally:
            remove_unfinished(self.directory)

    async def _run(self, command: list[str], data: Path, *, typed: bytes = b"") -> None:
        child = self._spawn(command, data, data, typed=typed)
        try:
            await child.ended.wait()
        except BaseException:
            await child.end(self._clock, STOP_STEPS)
            raise
        if child.code != 0:
            raise self._failure(f"{Path(command[0]).name} could not make {self.data}", child)

    def _command(self, binaries: Binaries, sockets: Path) -> list[str]:
        settings = self._settings | {
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": str(sockets),
            "unix_socket_permissions": "0700",
            "log_destination": "stderr",
            "logging_collector": "off",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [binaries.postgres, "-D", str(self.data), *options]

    def _spawn(
        self, command: list[str], data: Path, sockets: Path, *, typed: bytes = b"", stale: int | None = None
    ) -> Child:
        launcher = [sys.executable, "-I", "-S", str(Path(__file__).with_name("launcher.py"))]
        arguments = [str(os.getpid()), str(self.directory), str(data), str(sockets), *command]
        environment = _environment()
        if stale is not None:
            # PostgreSQL refuses to start while the pid in postmaster.pid lives, whoever that is by now, be it a zombie.
            # It trusts this variable, as it does its parent's pid. Unlike removing the file, that keeps its other
            # guard: shared memory still in use.
            environment["PG_GRANDPARENT_PID"] = str(stale)
        return Child([*launcher, *arguments], environment, self.directory, self._log.path, typed, self._on_end)

    def _on_end(self, child: Child) -> None:
        # `start` itself reports a server that never became ready.
        if child is self._server and self._url and not child.ending:
            self.exited.set()

    async def _wait_until_ready(self, server: Child) -> None:
        deadline = self._clock.monotonic() + READY_SECONDS
        while not is_ready(self.data, server.pid):
            if self._clock.monotonic() > deadline:
                raise self._failure(f"PostgreSQL was not ready after {READY_SECONDS:.0f} seconds", server)
            if await self._clock.wait(server.ended, POLL_SECONDS):
                raise self._failure("PostgreSQL did not start", server)

    def _failure(self, what: str, child: Child) -> EmbeddedPostgresError:
        lines = [what if child.code is None else f"{what} (exit code {child.code})"]
        free = shutil.disk_usage(self.directory).free
        if free < FULL_DISK_BYTES:
            lines.append(f"the disk is full: {free // 1_000_000} MB are free at {self.directory}")
        if tail := self._log.tail():
            lines += [f"last lines of {self._log.path}:", *(f"  {line}" for line in tail)]
        return EmbeddedPostgresError("\n".join(lines))


def find_url(directory: Path) -> str | None:
    """How a guest reaches the server that another process runs in this directory; None when none accepts
    connections."""
    try:
        url = (directory / "url").read_text(encoding="utf-8")
        pid = recorded_pid(directory / "postgres")
        if pid is None or not is_ready(directory / "postgres", pid):
            return None
        # The files may be left over from a crash. Somebody who listens is not, even one too busy to answer.
        with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(BlockingIOError, TimeoutError):
            probe.settimeout(1.0)
            probe.connect(f"{parse_qs(urlsplit(url).query)['host'][0]}/{SOCKET_NAME}")
    except PermissionError as error:
        raise EmbeddedPostgresError(explain(error, directory)) from error
    except (OSError, KeyError):
        return None
    return url


def _environment() -> dict[str, str]:
    """Of ours only what a program needs to start. Anything else might change PostgreSQL's mind (PGDATA, PGPORT,
    locales), or be a secret that other processes of the same user could read there."""
    kept = {name: value for name, value in os.environ.items() if name in PASSED or name.startswith(PASSED_PREFIXES)}
    return kept | {"LC_ALL": "C"}
