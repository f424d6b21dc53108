"""The worker's pool of launchers. `launcher/` is their program.

A command takes a launcher, with or without a namespace, and gives it back when none of its processes is left. The pool
starts launchers on demand and ends those that stay idle for a while. A launcher that died is not reused. All launchers
end with the worker, because the worker holds the only other end of their sockets.

A bubblewrap namespace that only contains processes has a launcher inside, started by a launcher outside: bubblewrap's
processes are children of the outer launcher, or become so when their parent dies. Such a namespace is reused. A sandbox
is not, because a command may leave files in it: a launcher outside makes one for each command.
"""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from foliot.clock import SystemClock
from foliot.service import own_task
from foliot.worker.executors.processes.containment import Containment
from foliot.worker.executors.processes.launcher.plan import LEADER_BYTES

PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from launcher.server import main; main(int(sys.argv[2]), sys.argv[3])"
)
"""Imports the program, because Python would compile a script again each time."""
IDLE_SECONDS = 30.0
LAUNCHER_SECONDS = 2.0
"""A launcher kills in milliseconds. A launcher that takes longer than this is killed itself."""
REAP_SECONDS = 0.002
MESSAGE_BYTES = 16_384


class LauncherConnection:
    """The worker's connection to a launcher, which may have died."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connection.fileno(), self._read)
        self._plan = -1
        self.is_lost = False
        """The launcher has died."""
        self.is_free = True
        self.verdict: asyncio.Future[bytes]
        """The launcher's message about the end of the command; empty if it died without one."""
        self.cleared: asyncio.Future[None]
        """Done when no process of the command is left, or the launcher has died."""

    def run(self, plan: bytes, descriptors: Sequence[int]) -> None:
        """Starts a command. The first descriptor receives its output. May raise OSError."""
        self.is_free = False
        self.verdict, self.cleared = self._loop.create_future(), self._loop.create_future()
        self._plan = memory_file(bytes(LEADER_BYTES) + plan)
        try:
            socket.send_fds(self._connection, [b"run"], [self._plan, *descriptors])
        except (BrokenPipeError, ConnectionResetError):
            self._read()

    def terminate(self) -> None:
        self._send(b"terminate")

    def kill(self) -> None:
        self._send(b"kill")

    @property
    def leader(self) -> int | None:
        """The process that it started, by its number in the launcher's namespace."""
        return int(self._noted() or 0) or None

    @property
    def has_begun(self) -> bool:
        """Whether the launcher began to start the command. It may have died before it noted the number."""
        return bool(self._noted())

    def forget(self) -> None:
        """Frees the launcher after its command has ended."""
        if self._plan >= 0:
            os.close(self._plan)
            self._plan = -1
        self.is_free = True

    def close(self) -> None:
        if self._connection.fileno() >= 0:
            self._loop.remove_reader(self._connection.fileno())
            self._connection.close()

    def read(self) -> None:
        """Reads pending messages before the event loop does."""
        if self._connection.fileno() >= 0:
            self._read()

    def _noted(self) -> bytes:
        return os.pread(self._plan, LEADER_BYTES, 0).strip(b"\0")

    def _send(self, message: bytes) -> None:
        with suppress(OSError):
            self._connection.send(message)

    def _read(self) -> None:
        try:
            while message := self._connection.recv(MESSAGE_BYTES):
                self._receive(message)
        except BlockingIOError:
            return
        except OSError:
            # It died with unread messages.
            pass
        self.is_lost = True
        self.close()
        self._lose()

    def _receive(self, message: bytes) -> None:
        for line in message.splitlines():
            if line == b"cleared":
                if not self.cleared.done():
                    self.cleared.set_result(None)
            elif not self.verdict.done():
                self.verdict.set_result(line)

    def _lose(self) -> None:
        if not self.is_free:
            if not self.verdict.done():
                self.verdict.set_result(b"")
            if not self.cleared.done():
                self.cleared.set_result(None)


class OutsideLauncher(LauncherConnection):
    """A launcher that is a child of the worker."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # Not asyncio, whose way to start a process copies the worker's page tables and takes milliseconds.
            self._process = subprocess.Popen(
                program(theirs.fileno(), "outside"),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={},
                start_new_session=True,
                pass_fds=[theirs.fileno()],
            )  # fmt: skip
        super().__init__(ours)

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill_process(self) -> None:
        self._process.kill()

    async def ended(self, clock: SystemClock) -> int:
        """Waits for its exit code, once the connection is closed or lost. Kills it if it does not exit in time."""
        give_up_at = clock.monotonic() + LAUNCHER_SECONDS
        while (code := self._process.poll()) is None:
            if clock.monotonic() > give_up_at:
                self.kill_process()
            await clock.sleep(REAP_SECONDS)
        return code


class Place:
    """Where a command can start: at a launcher outside, or at one in a namespace that a launcher outside has
    started."""

    def __init__(
        self, outside: OutsideLauncher, wrapper: tuple[str, ...] = (), mark: Mapping[str, str] | None = None
    ) -> None:
        self.outside = outside
        self.wrapper = wrapper
        self.launcher: LauncherConnection = outside
        self.idle_since = 0.0
        """In the event loop's time."""
        self._errors = -1
        if wrapper:
            self._enter(mark or {})

    @property
    def is_usable(self) -> bool:
        is_whole = self.launcher is self.outside or not self.outside.verdict.done()
        return is_whole and self.launcher.is_free and not self.launcher.is_lost and not self.outside.is_lost

    @property
    def bubblewrap_errors(self) -> str:
        """The error output of bubblewrap."""
        return os.pread(self._errors, MESSAGE_BYTES, 0).decode(errors="replace").strip() if self._errors >= 0 else ""

    def leave(self) -> None:
        if self.launcher is not self.outside:
            self.launcher.close()
            self.outside.kill()
            os.close(self._errors)
            self._errors = -1

    def _enter(self, mark: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._errors = memory_file(b"")
        self.launcher = LauncherConnection(ours)
        with theirs:
            argv = (*self.wrapper, "--", *program(theirs.fileno(), "namespace"))
            self.outside.run(encode_plan(argv, mark, [theirs.fileno()]), [self._errors, theirs.fileno()])


class LauncherPool:
    def __init__(self, containment: Containment) -> None:
        self.containment = containment
        self._clock = SystemClock()
        self._idle: list[Place] = []
        """The most recently used place is last."""
        self._ending: set[asyncio.Task[None]] = set()
        self._shedding: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._commands = itertools.count(1)

    def new_mark(self) -> dict[str, str]:
        """The mark of a command and its descendants: the worker's mark and a number."""
        number = next(self._commands)
        return {name: f"{mark}.{number}" for name, mark in self.containment.marking.items()}

    def take(self, wrapper: Sequence[str] = ()) -> Place:
        """A free place, or a new one. May raise OSError."""
        wanted = tuple(wrapper)
        place = self._idle_one(wanted)
        if place is None and wanted:
            outside = self._idle_one(())
            place = Place(OutsideLauncher() if outside is None else outside.outside, wanted, self.containment.marking)
        return place or Place(OutsideLauncher())

    async def give_back(self, place: Place, *, is_clean: bool) -> None:
        """Takes a place back. `is_clean`: it can be reused. Returns when no process is left in it."""
        place.launcher.forget()
        if is_clean and place.is_usable:
            self._keep(place)
            return
        if place.wrapper:
            place.leave()
            await asyncio.wait([place.outside.cleared], timeout=LAUNCHER_SECONDS)
            is_clear = place.outside.cleared.done()
            place.outside.forget()
            place = Place(place.outside)
            if is_clear and place.is_usable:
                self._keep(place)
                return
        await self._end(place.outside)

    async def close(self) -> None:
        self._is_closed = True
        if self._shedding is not None:
            self._shedding.cancel()
        while self._idle:
            await self.give_back(self._idle.pop(), is_clean=False)
        if self._ending:
            await asyncio.wait(self._ending)

    def _idle_one(self, wrapper: tuple[str, ...]) -> Place | None:
        for at in range(len(self._idle) - 1, -1, -1):
            if self._idle[at].wrapper == wrapper:
                place = self._idle.pop(at)
                place.launcher.read()
                if place.is_usable:
                    return place
                self._give_up(place)
        return None

    def _keep(self, place: Place) -> None:
        if self._is_closed:
            self._give_up(place)
            return
        loop = asyncio.get_running_loop()
        place.idle_since = loop.time()
        self._idle.append(place)
        if self._shedding is None:
            self._shedding = loop.call_later(IDLE_SECONDS, self._shed)

    def _shed(self) -> None:
        self._shedding = None
        loop = asyncio.get_running_loop()
        while self._idle:
            rest = self._idle[0].idle_since + IDLE_SECONDS - loop.time()
            if rest > 0:
                self._shedding = loop.call_later(rest, self._shed)
                return
            self._give_up(self._idle.pop(0))

    def _give_up(self, place: Place) -> None:
        ending = own_task(self.give_back(place, is_clean=False))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _end(self, outside: OutsideLauncher) -> None:
        outside.close()
        await outside.ended(self._clock)


def program(descriptor: int, role: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", PROGRAM, str(Path(__file__).parent), str(descriptor), role)


def encode_plan(
    argv: Sequence[str], environment: Mapping[str, str], passed: Sequence[int], more: Sequence[str] = ()
) -> bytes:
    """Encodes a plan for `launcher/plan.py`. `passed`: the descriptor numbers that the command gets."""
    entries = [f"argv={word}" for word in argv]
    entries += [f"environment={name}={value}" for name, value in environment.items()]
    entries += [f"descriptor={descriptor}" for descriptor in passed]
    return b"".join(entry.encode("utf-8", "surrogateescape") + b"\0" for entry in (*entries, *more))


def memory_file(content: bytes, flags: int = os.MFD_CLOEXEC) -> int:
    """A file in memory, so that arguments and environments of commands appear neither on disk nor in process lists."""
    descriptor = os.memfd_create("foliot", flags)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def sealed_file(content: bytes) -> int:
    """A read-only file for a command. A writable one would let the command get around its memory limit."""
    descriptor = memory_file(content, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    fcntl.fcntl(
        descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    )
    return descriptor
