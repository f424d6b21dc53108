"""Runs a PostgreSQL server in a directory, as a child of this process.

    DIRECTORY/owner.lock   flock held by the owner, with its pid: one owner at a time
    DIRECTORY/postgres     the data; made elsewhere and renamed when complete, so it is whole or absent
    DIRECTORY/run          the socket, or a link to where it is when this path is too long for one
    DIRECTORY/url          how guests (other processes of the same user) connect; there while the server runs
    DIRECTORY/log          what PostgreSQL says

Only a unix socket is opened; the 0700 directories are the guard, so there is no password. Commits are durable. The server dies with its
owner (Linux: the kernel sees to it); where it did not, the next owner stops it before starting its own. A pid is believed only when the
process is a postgres of this very directory: pids are reused, above all in containers.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from foliot.clock import Clock
from foliot.embedded.binaries import Binaries, find_binaries, made_by
from foliot.errors import EmbeddedPostgresError

READY_SECONDS = 120.0
POLL_SECONDS = 0.01
# Fast shutdown, immediate shutdown, and what nothing resists; how long each may take.
STOP_STEPS = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))
LOG_MAX_BYTES = 10_000_000
LOG_TAIL_LINES = 12
FULL_DISK_BYTES = 32_000_000

PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
SOCKET_PATH_MAX_BYTES = 103
# A comma parts two directories, for PostgreSQL as for its clients; other rare characters are not worth finding out about.
SOCKET_PATH_PATTERN = re.compile(r"[\w/.+~@-]+")
SOCKET_PREFIX = "foliot-"
UNFINISHED_PREFIX = "postgres.unfinished-"

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
    """The owner's handle. Start it from the main thread: the kernel stops the server when the thread that started it ends."""

    def __init__(self, directory: Path, *, clock: Clock, binaries: str = "", settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory.resolve()
        self.data = self.directory / "postgres"
        # Set when the server ends without having been asked to; `start` brings it back and clears this.
        self.exited = asyncio.Event()
        self._clock = clock
        self._named_binaries = binaries
        self._settings = DEFAULT_SETTINGS | dict(settings or {})
        self._log = _Log(self.directory / "log" / "postgres.log")
        self._changing = asyncio.Lock()
        self._lock: int | None = None
        self._server: _Child | None = None
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
                raise EmbeddedPostgresError(_explain(error, self.directory)) from error
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
        _make_private(self.directory)
        self._take_lock()
        _make_private(self._log.path.parent)
        self._log.open_new_chapter()
        binaries = find_binaries(self._named_binaries, self.data)
        await self._end_leftovers()
        if made_by(self.data) is None:
            await self._make_data(binaries)
        sockets = _make_socket_directory(self.directory)
        stale = _recorded_pid(self.data)
        self._server = self._spawn(self._command(binaries, sockets), self.data, sockets, stale=stale)
        await self._wait_until_ready(self._server)
        url = f"postgresql://foliot@/foliot?host={quote(str(sockets))}&port={PORT}"
        _write_private(self.directory / "url", url)
        return url

    async def _stop(self) -> None:
        if self._server is not None:
            await self._end_child(self._server)
            self._server = None
        if self._lock is not None:
            (self.directory / "url").unlink(missing_ok=True)
            _clear_socket_directory(self.directory)
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

    async def _end_leftovers(self) -> None:
        """Ends what a dead owner, or a dead postmaster, left running here. Two servers on one directory would ruin it."""
        _remove_unfinished(self.directory)
        record = self.data / "postmaster.pid"
        if not record.exists():
            return
        await self._end_strangers(lambda: _living_postmaster(self.data), STOP_STEPS)
        # No SIGINT for the rest: to some children of a postmaster it means something else.
        await self._end_strangers(lambda: _living_backends(self.data), STOP_STEPS[1:])
        if _recorded_pid(self.data) is None:
            # Emptied by a crash of the machine. PostgreSQL would wait for its author for ever.
            record.unlink(missing_ok=True)

    async def _end_strangers(self, find: Callable[[], Iterable[int]], steps: Iterable[tuple[signal.Signals, float]]) -> None:
        pids: list[int] = []
        for number, seconds in steps:
            deadline = self._clock.monotonic() + seconds
            for pid in find():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            while pids := list(find()):
                if self._clock.monotonic() > deadline:
                    break
                await self._clock.sleep(POLL_SECONDS)
            else:
                return
        raise EmbeddedPostgresError(f"{self.data} is still in use by process {pids[0]}, which does not end")

    async def _make_data(self, binaries: Binaries) -> None:
        if self.data.is_dir() and any(self.data.iterdir()):
            raise EmbeddedPostgresError(
                f"{self.data} holds files but no PostgreSQL data: move them away, or set FOLIOT_DATA to another directory"
            )
        data = _make_unfinished(self.directory)
        durable = self._settings.get("fsync") != "off"
        initdb = [binaries.initdb, "-D", str(data), "-U", "foliot", "-E", "UTF8", "--locale=C", "--data-checksums"]
        initdb += ["--auth-local=trust", "--auth-host=reject", *([] if durable else ["--no-sync"])]
        single = [binaries.postgres, "--single", "-D", str(data), "-c", "exit_on_error=on", "template1"]
        try:
            await self._run(initdb, data)
            await self._run(single, data, typed=b"create database foliot\n")
            _move_into_place(data, self.data)
        finally:
            _remove_unfinished(self.directory)

    async def _run(self, command: list[str], data: Path, *, typed: bytes = b"") -> None:
        child = self._spawn(command, data, data, typed=typed)
        try:
            await child.ended.wait()
        except BaseException:
            await self._end_child(child)
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

    def _spawn(self, command: list[str], data: Path, sockets: Path, *, typed: bytes = b"", stale: int | None = None) -> _Child:
        launcher = [sys.executable, "-I", "-S", str(Path(__file__).with_name("launcher.py"))]
        arguments = [str(os.getpid()), str(self.directory), str(data), str(sockets), *command]
        environment = _environment()
        if stale is not None:
            # PostgreSQL refuses to start while the pid in postmaster.pid lives, whoever that is by now, be it a zombie. It trusts this
            # variable, as it does its parent's pid. Unlike removing the file, that keeps its other guard: shared memory still in use.
            environment["PG_GRANDPARENT_PID"] = str(stale)
        return _Child([*launcher, *arguments], environment, self.directory, self._log.path, typed, self._on_end)

    def _on_end(self, child: _Child) -> None:
        # One that never became ready is told by `start` itself.
        if child is self._server and self._url and not child.ending:
            self.exited.set()

    async def _wait_until_ready(self, server: _Child) -> None:
        deadline = self._clock.monotonic() + READY_SECONDS
        while not _is_ready(self.data, server.pid):
            if self._clock.monotonic() > deadline:
                raise self._failure(f"PostgreSQL was not ready after {READY_SECONDS:.0f} seconds", server)
            if await self._clock.wait(server.ended, POLL_SECONDS):
                raise self._failure("PostgreSQL did not start", server)

    async def _end_child(self, child: _Child) -> None:
        child.ending = True
        for number, seconds in STOP_STEPS:
            if child.ended.is_set():
                return
            child.send(number)
            await self._clock.wait(child.ended, seconds)

    def _failure(self, what: str, child: _Child) -> EmbeddedPostgresError:
        lines = [what if child.code is None else f"{what} (exit code {child.code})"]
        free = shutil.disk_usage(self.directory).free
        if free < FULL_DISK_BYTES:
            lines.append(f"the disk is full: {free // 1_000_000} MB are free at {self.directory}")
        if tail := self._log.tail():
            lines += [f"last lines of {self._log.path}:", *(f"  {line}" for line in tail)]
        return EmbeddedPostgresError("\n".join(lines))


def find_url(directory: Path) -> str | None:
    """How a guest reaches the server that another process runs in this directory; None when none accepts connections."""
    try:
        url = (directory / "url").read_text(encoding="utf-8")
        pid = _recorded_pid(directory / "postgres")
        if pid is None or not _is_ready(directory / "postgres", pid):
            return None
        # The files may be left over from a crash. Somebody who listens is not, even one too busy to answer.
        with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(BlockingIOError, TimeoutError):
            probe.settimeout(1.0)
            probe.connect(f"{parse_qs(urlsplit(url).query)['host'][0]}/{SOCKET_NAME}")
    except PermissionError as error:
        raise EmbeddedPostgresError(_explain(error, directory)) from error
    except (OSError, KeyError):
        return None
    return url


class _Child:
    """A process of ours, in a session of its own so that Ctrl-C in the terminal reaches us alone.

    A thread reaps it: the same under asyncio and uvloop, with and without pidfd, and never left a zombie.
    """

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        directory: Path,
        log: Path,
        typed: bytes,
        on_end: Callable[[_Child], None],
    ) -> None:
        self.ended = asyncio.Event()
        self.ending = False
        self.code: int | None = None
        self._on_end = on_end
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=directory,
                env=environment,
                start_new_session=True,
            )
        self.pid = self._process.pid
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._reap, args=(loop, typed), name=f"reaper of {self.pid}", daemon=True).start()

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    def _reap(self, loop: asyncio.AbstractEventLoop, typed: bytes) -> None:
        self._process.communicate(typed)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self.code = self._process.returncode
        self.ended.set()
        self._on_end(self)


class _Log:
    """What PostgreSQL says; knows where this start's part begins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin = 0

    def open_new_chapter(self) -> None:
        with self.path.open("ab") as log:
            self._begin = log.tell()
        if self._begin > LOG_MAX_BYTES:
            self.path.replace(self.path.with_suffix(".log.1"))
            self._begin = 0

    def tail(self) -> list[str]:
        try:
            with self.path.open("rb") as log:
                log.seek(max(self._begin, log.seek(0, os.SEEK_END) - 8192))
                return log.read().decode(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        except OSError:
            return []


def _recorded_pid(data: Path) -> int | None:
    lines = _postmaster_lines(data)
    return abs(int(lines[0])) if lines and lines[0].lstrip("-").isdecimal() else None


def _is_ready(data: Path, pid: int) -> bool:
    lines = _postmaster_lines(data)
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


def _postmaster_lines(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []


def _living_postmaster(data: Path) -> list[int]:
    """The postmaster of this directory, if it lives. A zombie has no command line and so counts as dead."""
    pid = _recorded_pid(data)
    if pid is None:
        return []
    if sys.platform == "linux":
        arguments = _command_line(pid).split(b"\0")
        is_postgres = arguments[0].rpartition(b"/")[2] == b"postgres"
        is_ours = is_postgres and (os.fsencode(data) in arguments or _works_in(pid, data))
    else:
        answer = subprocess.run(["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, check=False)
        is_ours = re.match(rb"\S*postgres .*-D " + re.escape(os.fsencode(data)), answer.stdout) is not None
    return [pid] if is_ours else []


def _living_backends(data: Path) -> list[int]:
    """Children of a postmaster that was killed. They end by themselves, but not in the midst of a query."""
    # Empty where there is no /proc: PostgreSQL then notices them by their shared memory, and does not start.
    pids = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if _command_line(pid).startswith(b"postgres:") and _works_in(pid, data)]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _works_in(pid: int, data: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").samefile(data)
    except OSError:
        return False


def _make_private(directory: Path) -> None:
    """Makes the directory for us alone. One that holds something already keeps its mode: it may be more than ours."""
    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
    elif not any(directory.iterdir()):
        directory.chmod(0o700)


def _make_socket_directory(directory: Path) -> Path:
    _clear_socket_directory(directory)
    run = directory / "run"
    if _fits(run):
        run.mkdir(mode=0o700, exist_ok=True)
        run.chmod(0o700)
        return run
    short = Path(tempfile.mkdtemp(prefix=SOCKET_PREFIX, dir=None if _fits(Path(tempfile.gettempdir(), "x" * 20)) else "/tmp"))  # noqa: S108
    with contextlib.suppress(FileNotFoundError):
        run.rmdir()
    run.symlink_to(short)
    return short


def _clear_socket_directory(directory: Path) -> None:
    """Nobody lives here now, so what is left of sockets is stale, whatever pid is written in their locks."""
    run = directory / "run"
    if run.is_symlink():
        short = run.readlink()
        if short.name.startswith(SOCKET_PREFIX):
            shutil.rmtree(short, ignore_errors=True)
        run.unlink()
    for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
        (run / name).unlink(missing_ok=True)


def _fits(sockets: Path) -> bool:
    return SOCKET_PATH_PATTERN.fullmatch(str(sockets)) is not None and len(os.fsencode(sockets / SOCKET_NAME)) <= SOCKET_PATH_MAX_BYTES


def _environment() -> dict[str, str]:
    """Ours without what would change PostgreSQL's mind (PGDATA, PGPORT, locales) and without our secrets."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG", "FOLIOT_"))}
    return kept | {"LC_ALL": "C"}


def _write_private(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def _make_unfinished(directory: Path) -> Path:
    # A name of its own each time: an initdb that is being killed still clears the directory it was given.
    return Path(tempfile.mkdtemp(prefix=UNFINISHED_PREFIX, dir=directory))


def _remove_unfinished(directory: Path) -> None:
    for unfinished in directory.glob(f"{UNFINISHED_PREFIX}*"):
        shutil.rmtree(unfinished, ignore_errors=True)


def _move_into_place(made: Path, data: Path) -> None:
    made.rename(data)
    parent = os.open(data.parent, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def _explain(error: OSError, directory: Path) -> str:
    where = error.filename or directory
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            what = f"the disk is full at {where}: free some space"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            what = f"{where} can't be used by user id {os.geteuid()} ({error.strerror}): change its owner or mode"
        case errno.EEXIST | errno.ENOTDIR:
            what = f"{where} is in the way: not a directory"
        case _:
            what = f"{where}: {error.strerror}"
    return f"{what}, or set FOLIOT_DATA to another directory"
