"""The launchers of a worker, kept warm: a command takes one, or one in a namespace, and gives it back when nothing is
left of it.

None is started before it is needed, and those that had nothing to do for a while end. One that died is not used again:
whoever had it is told. All of them end with the worker, whose end of their sockets is the only one. `launcher/` is the
other side.

A namespace of bubblewrap that only keeps processes together has a launcher inside, which a launcher outside has
started: bubblewrap's processes are its children, or become so, in whatever moment they are left alone. Such a namespace
is used again. A sandbox, which a command may have left something in, is not: a launcher outside makes one for each
command.
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
"""Imported, because Python compiles what it is given as a program anew each time."""
IDLE_SECONDS = 30.0
LAUNCHER_SECONDS = 2.0
"""A launcher kills in milliseconds; one that does not is killed itself."""
REAP_SECONDS = 0.002
TOLD_BYTES = 16_384


class LauncherConnection:
    """A connection to one that may have ended."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connection.fileno(), self._read)
        self._plan = -1
        self.is_lost = False
        """There is nobody at the other end."""
        self.is_free = True
        self.told: asyncio.Future[bytes]
        """How what it runs has ended; empty if it did not say so."""
        self.cleared: asyncio.Future[None]
        """Done when nothing is left of it, or nobody who could say so."""

    def run(self, plan: bytes, descriptors: Sequence[int]) -> None:
        """The first of them is where the output goes. May raise OSError."""
        self.is_free = False
        self.told, self.cleared = self._loop.create_future(), self._loop.create_future()
        self._plan = memory_file(bytes(LEADER_BYTES) + plan)
        try:
            socket.send_fds(self._connection, [b"run"], [self._plan, *descriptors])
        except (BrokenPipeError, ConnectionResetError):
            self._read()

    def ask(self) -> None:
        self._say(b"ask")

    def kill(self) -> None:
        self._say(b"kill")

    @property
    def leader(self) -> int | None:
        """The process that it started, as it is numbered there."""
        return int(self._noted() or 0) or None

    @property
    def has_begun(self) -> bool:
        """To start it. It may have been killed before it could note the number."""
        return bool(self._noted())

    def forget(self) -> None:
        """What it ran is over."""
        if self._plan >= 0:
            os.close(self._plan)
            self._plan = -1
        self.is_free = True

    def close(self) -> None:
        if self._connection.fileno() >= 0:
            self._loop.remove_reader(self._connection.fileno())
            self._connection.close()

    def read(self) -> None:
        """What was said up to now, before the event loop gets to it."""
        if self._connection.fileno() >= 0:
            self._read()

    def _noted(self) -> bytes:
        return os.pread(self._plan, LEADER_BYTES, 0).strip(b"\0")

    def _say(self, word: bytes) -> None:
        with suppress(OSError):
            self._connection.send(word)

    def _read(self) -> None:
        try:
            while message := self._connection.recv(TOLD_BYTES):
                self._hear(message)
        except BlockingIOError:
            return
        except OSError:
            # It died before it had read all that was said to it.
            pass
        self.is_lost = True
        self.close()
        self._lose()

    def _hear(self, message: bytes) -> None:
        for line in message.splitlines():
            if line == b"cleared":
                if not self.cleared.done():
                    self.cleared.set_result(None)
            elif not self.told.done():
                self.told.set_result(line)

    def _lose(self) -> None:
        if not self.is_free:
            if not self.told.done():
                self.told.set_result(b"")
            if not self.cleared.done():
                self.cleared.set_result(None)


class OutsideLauncher(LauncherConnection):
    """A launcher that is a child of the worker."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # Without asyncio: its own way of starting a process copies the worker's page tables, and costs
            # milliseconds.
            self._process = subprocess.Popen(
                program(theirs.fileno(), "outside"),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={}, start_new_session=True,
                pass_fds=[theirs.fileno()],
            )  # fmt: skip
        super().__init__(ours)

    @property
    def pid(self) -> int:
        return self._process.pid

    def put_to_death(self) -> None:
        self._process.kill()

    async def ended(self, clock: SystemClock) -> int:
        """Its exit code; to be called when the connection is closed or lost. One that does not end of that is
        killed."""
        give_up_at = clock.monotonic() + LAUNCHER_SECONDS
        while (code := self._process.poll()) is None:
            if clock.monotonic() > give_up_at:
                self.put_to_death()
            await clock.sleep(REAP_SECONDS)
        return code


class Place:
    """Where a command can be started: by a launcher outside, or by one in a namespace, which another one outside has
    started."""

    def __init__(
        self, outside: OutsideLauncher, wrapper: tuple[str, ...] = (), mark: Mapping[str, str] | None = None
    ) -> None:
        self.outside = outside
        self.wrapper = wrapper
        self.launcher: LauncherConnection = outside
        self.idle_since = 0.0
        """On the loop's clock."""
        self._said = -1
        if wrapper:
            self._enter(mark or {})

    @property
    def is_usable(self) -> bool:
        is_whole = self.launcher is self.outside or not self.outside.told.done()
        return is_whole and self.launcher.is_free and not self.launcher.is_lost and not self.outside.is_lost

    @property
    def said(self) -> str:
        """What bubblewrap had to say."""
        return os.pread(self._said, TOLD_BYTES, 0).decode(errors="replace").strip() if self._said >= 0 else ""

    def leave(self) -> None:
        if self.launcher is not self.outside:
            self.launcher.close()
            self.outside.kill()
            os.close(self._said)
            self._said = -1

    def _enter(self, mark: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._said = memory_file(b"")
        self.launcher = LauncherConnection(ours)
        with theirs:
            argv = (*self.wrapper, "--", *program(theirs.fileno(), "namespace"))
            self.outside.run(written(argv, mark, [theirs.fileno()]), [self._said, theirs.fileno()])


class LauncherPool:
    def __init__(self, containment: Containment) -> None:
        self.containment = containment
        self._clock = SystemClock()
        self._idle: list[Place] = []
        """The one that was used last at the end: it is the warmest."""
        self._ending: set[asyncio.Task[None]] = set()
        self._shedding: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._commands = itertools.count(1)

    def new_mark(self) -> dict[str, str]:
        """What a command, and all that comes from it, is known by: the worker's mark and a number."""
        number = next(self._commands)
        return {name: f"{mark}.{number}" for name, mark in self.containment.marking.items()}

    def take(self, wrapper: Sequence[str] = ()) -> Place:
        """One that is free, or a new one. May raise OSError."""
        wanted = tuple(wrapper)
        place = self._idle_one(wanted)
        if place is None and wanted:
            outside = self._idle_one(())
            place = Place(OutsideLauncher() if outside is None else outside.outside, wanted, self.containment.marking)
        return place or Place(OutsideLauncher())

    async def give_back(self, place: Place, *, is_clean: bool) -> None:
        """`is_clean` says that it may be used again as it is. Returns when nothing is left in it."""
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


def written(
    argv: Sequence[str], environment: Mapping[str, str], passed: Sequence[int], more: Sequence[str] = ()
) -> bytes:
    """A plan, as `launcher/` has it. `passed` are the numbers of descriptors that the command gets."""
    entries = [f"argv={word}" for word in argv]
    entries += [f"environment={name}={value}" for name, value in environment.items()]
    entries += [f"descriptor={descriptor}" for descriptor in passed]
    return b"".join(entry.encode("utf-8", "surrogateescape") + b"\0" for entry in (*entries, *more))


def memory_file(content: bytes, flags: int = os.MFD_CLOEXEC) -> int:
    """A file that is nowhere: neither arguments nor environments of commands are to be seen on a disk or in a list of
    processes."""
    descriptor = os.memfd_create("foliot", flags)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def sealed_file(content: bytes) -> int:
    """One for a command to read. It can't be written to, or a command could put there what it may not have in
    memory."""
    descriptor = memory_file(content, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    fcntl.fcntl(
        descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    )
    return descriptor
