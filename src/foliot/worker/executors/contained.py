"""A tree of processes under way: started by the launcher, read, asked to end, and dead as a whole when it is left.

The worker holds three pipes: what the tree prints, what the launcher tells, and the control pipe, whose end, also by the worker's death, is
the end of the tree. See `launcher.py` for the other side.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foliot.clock import SystemClock
from foliot.model.ids import new_id
from foliot.worker.executors.containment import LIMIT_FILES, Containment, Means

CHUNK = 65_536
DRAIN_SECONDS = 1.0
END_SECONDS = 5.0
"""What has been asked to end and has not ended by then is killed."""
LAUNCHER_SECONDS = 2.0
"""The launcher kills in milliseconds; one that does not is killed itself."""
PIPE_CHUNKS = 32
CGROUP_TRIES = 100
TOLD = re.compile(rb"^(started|exit|signal|refused|exceeded) ([^\n]*)\n", re.MULTILINE)
NAMESPACE = re.compile(rb'^\{ "child-pid": ([0-9]+)', re.MULTILINE)
LAUNCHER = Path(__file__).with_name("launcher.py")
TOLD_MAX = 16_384
EXCEEDED_MEMORY = "more memory than `memory_mb` allows"


@dataclass(frozen=True, slots=True)
class Command:
    """What to start. `limits` are in the units of setrlimit."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str = ""
    stdin: bytes = b""
    limits: Mapping[str, int] = field(default_factory=dict)
    tree: Mapping[str, int] = field(default_factory=dict)
    """Limits of all processes together: `memory` in bytes, `pids`."""
    user: int | None = None
    wrapper: Sequence[str] | None = None
    """A sandbox's own namespaces, in place of the plain one."""
    descriptors: Sequence[int] = ()
    """Further ones that are passed on."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the command ended: one of the four."""

    code: int = 0
    signal: int | None = None
    refused: str | None = None
    """It never ran."""
    exceeded: str | None = None
    """It was killed for having used more than it may, which is this."""


class Contained:
    """Use as an async context manager: when it is left, for whatever reason, nothing of the tree is alive."""

    def __init__(self, command: Command, containment: Containment, on_output: Callable[[bytes], None]) -> None:
        self._clock = SystemClock()
        self._command = command
        self._containment = containment
        self._on_output = on_output
        self._is_wrapped = command.wrapper is not None or containment.means is Means.BUBBLEWRAP
        self._open: set[int] = set()
        self._output = self._told = self._control = -1
        self._words = b""
        self._verdict: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._output_ended = asyncio.Event()
        self._cgroup: Path | None = None
        self._limits_memory = False
        self._leader: int | None = None
        self._namespace: int | None = None
        self._process: Process | None = None
        self._waiting: asyncio.Future[int]

    async def __aenter__(self) -> Contained:
        starting = asyncio.ensure_future(self._start())
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            # A process that came to be while its attempt was cancelled would have nobody to end it.
            with suppress(OSError):
                await starting
            await self.end()
            raise
        except OSError:
            await self.end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        ending = asyncio.ensure_future(self.end())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise

    async def verdict(self) -> Verdict:
        """How the command ended. Children that it left behind may be alive."""
        either: list[asyncio.Future[Any]] = [self._verdict, self._waiting]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._verdict.done():
            # The launcher, or what stands between it and us, was killed; whatever it still said comes first.
            self._read_told()
        verdict = self._verdict.result() if self._verdict.done() else self._without_a_word(self._waiting.result())
        return Verdict(exceeded=EXCEEDED_MEMORY) if verdict.signal == signal.SIGKILL and self._ran_out_of_memory() else verdict

    def _ran_out_of_memory(self) -> bool:
        """Whether the kernel killed for that in the command's cgroup."""
        if self._cgroup is None or not self._limits_memory:
            return False
        with suppress(OSError):
            return re.search(r"^oom_kill [1-9]", (self._cgroup / "memory.events").read_text(), re.MULTILINE) is not None
        return False

    async def drained(self) -> None:
        """Returns when all output was read, or when whoever holds it open has had his time."""
        ended = asyncio.ensure_future(self._output_ended.wait())
        try:
            await asyncio.wait([ended], timeout=DRAIN_SECONDS)
        finally:
            ended.cancel()

    def read_what_is_there(self) -> None:
        """Takes in what has been printed up to now; no more than a pipe holds, should somebody go on printing."""
        for _ in range(PIPE_CHUNKS):
            if self._output not in self._open or not self._read_output():
                return

    async def ask_and_wait(self, seconds: float | None = None) -> None:
        """Asks the command to end, and waits for that. What does not go in time dies with `end`."""
        with suppress(OSError):
            os.write(self._control, b"T")
        # Not asyncio.timeout: in a task that is being cancelled, early releases of Python 3.11 let it raise CancelledError instead.
        ending = asyncio.ensure_future(self.verdict())
        try:
            await asyncio.wait([ending], timeout=END_SECONDS if seconds is None else seconds)
        finally:
            ending.cancel()

    async def end(self) -> None:
        """Kills what there is; returns when it is gone."""
        self._close(self._control)
        if (process := self._process) is not None:
            await asyncio.wait([self._waiting], timeout=LAUNCHER_SECONDS)
            if not self._waiting.done():
                # The launcher was stopped, or the tree is large. The death of what made the namespace is the death of all in it.
                with suppress(ProcessLookupError):
                    process.kill()
                await self._waiting
            await self._namespace_emptied()
            await self._kill_what_the_launcher_left()
        self.read_what_is_there()
        for descriptor in list(self._open):
            self._close(descriptor)

    # --- starting

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._output, output = self._pipe()
        self._told, status = self._pipe()
        control, self._control = self._pipe()
        entrance = self._make_cgroup()
        plan, stdin = self._hold(_memory_file(self._plan(entrance))), self._hold(_memory_file(self._command.stdin))
        wrapper, passed = self._wrapper(), [control, status, output, plan]
        if wrapper:
            # A copy: bubblewrap keeps the one that it is told to write to from the command. It has the other end too, because to be killed
            # by a pipe that nobody reads, in the middle of starting, would leave its inner process behind.
            passed += [self._hold(os.dup(status)), self._hold(os.dup(self._told))]
            wrapper = [*wrapper, "--json-status-fd", str(passed[4]), "--"]
        self._process = await asyncio.create_subprocess_exec(
            *wrapper, sys.executable, "-I", "-S", str(LAUNCHER), *map(str, passed[:4]),
            stdin=stdin, stdout=DEVNULL, stderr=status, env=self._containment.mark if wrapper else {}, start_new_session=True,
            pass_fds=[*passed, *entrance, *self._command.descriptors],
        )  # fmt: skip
        self._waiting = asyncio.ensure_future(self._process.wait())
        for descriptor in (*passed, *entrance, stdin):
            self._close(descriptor)
        loop.add_reader(self._output, self._read_output)
        loop.add_reader(self._told, self._read_told)

    def _wrapper(self) -> list[str]:
        if self._command.wrapper is not None:
            return list(self._command.wrapper)
        return list(self._containment.namespace()) if self._is_wrapped else []

    def _make_cgroup(self) -> list[int]:
        """The way into it, if there is to be one: held open, because it is not to be seen in a sandbox."""
        limits = {name: value for name, value in self._command.tree.items() if name in self._containment.controllers}
        is_means = not self._is_wrapped and self._containment.means is Means.CGROUP
        if self._containment.cgroup is None or not (limits or is_means):
            return []
        self._cgroup = self._containment.cgroup / f"foliot-{new_id()}"
        self._cgroup.mkdir()
        for name, value in limits.items():
            (self._cgroup / LIMIT_FILES[name]).write_text(str(value))
        if "memory" in limits:
            self._limits_memory = True
            # All of it dies, or a shell goes on without half of its children. Swapped out is still used.
            for file, content in (("memory.oom.group", "1"), ("memory.swap.max", "0")):
                with suppress(OSError):
                    (self._cgroup / file).write_text(content)
        return [self._hold(os.open(self._cgroup / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))]

    def _plan(self, entrance: Sequence[int]) -> bytes:
        command = self._command
        entries = [f"argv={word}" for word in command.argv]
        entries += [f"environment={name}={value}" for name, value in command.environment.items()]
        entries += [f"{name}={value}" for name, value in command.limits.items()]
        entries += [f"descriptor={descriptor}" for descriptor in command.descriptors]
        entries.append(f"directory={command.directory}")
        if command.user is not None:
            entries.append(f"user={command.user}")
        if not self._is_wrapped:
            entries.append("adopts=")
            if self._cgroup is not None:
                entries.append(f"cgroup={self._cgroup}")
        entries += [f"entrance={descriptor}" for descriptor in entrance]
        if "memory" in command.tree and not self._limits_memory:
            entries.append(f"memory={command.tree['memory']}")
        return b"".join(entry.encode("utf-8", "surrogateescape") + b"\0" for entry in entries)

    # --- reading

    def _read_output(self) -> bool:
        """Whether there was anything."""
        try:
            chunk = os.read(self._output, CHUNK)
        except BlockingIOError:
            return False
        if chunk:
            self._on_output(chunk)
        else:
            self._close(self._output)
            self._output_ended.set()
        return bool(chunk)

    def _read_told(self) -> None:
        with suppress(BlockingIOError):
            while self._told in self._open:
                if not (said := os.read(self._told, CHUNK)):
                    self._close(self._told)
                self._words = (self._words + said)[-TOLD_MAX:]
        if self._namespace is None and (made := NAMESPACE.search(self._words)):
            with suppress(OSError):
                self._namespace = self._hold(os.pidfd_open(int(made[1])))
        for word, argument in TOLD.findall(self._words):
            text = argument.decode(errors="replace")
            if word == b"started":
                self._leader = int(text)
            elif not self._verdict.done():
                self._verdict.set_result(_verdict(word, text))

    def _without_a_word(self, status: int) -> Verdict:
        # A launcher that was killed may have been killed by what it had started, before it could say so.
        if self._leader is not None or status < 0 or status > 128:
            # bubblewrap tells 128 + 9 for SIGKILL.
            return Verdict(signal=-status if status < 0 else status - 128 if status > 128 else signal.SIGKILL)
        said = b" ".join(line for line in self._words.splitlines() if not line.startswith(b"{")).decode(errors="replace")
        return Verdict(refused=said.strip() or f"the launcher ended with {status}")

    # --- ending

    async def _namespace_emptied(self) -> None:
        """The first process of a namespace is gone only when all the others are."""
        if self._namespace is None:
            return
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._namespace, gone.set)
        waiting = asyncio.ensure_future(gone.wait())
        await asyncio.wait([waiting], timeout=END_SECONDS)
        waiting.cancel()

    async def _kill_what_the_launcher_left(self) -> None:
        """Only if the launcher itself was killed: otherwise it has done this."""
        if not self._is_wrapped and self._leader is not None and self._waiting.result() != 0:
            with suppress(OSError):
                os.killpg(self._leader, signal.SIGKILL)
        if self._cgroup is None:
            return
        with suppress(OSError):
            (self._cgroup / "cgroup.kill").write_text("1")
        for _ in range(CGROUP_TRIES):
            try:
                self._cgroup.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                # Not empty yet: what was killed takes its moment.
                await self._clock.sleep(0.01)

    # --- descriptors

    def _pipe(self) -> tuple[int, int]:
        """Non-blocking on the side that we read."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        return self._hold(reading), self._hold(writing)

    def _hold(self, descriptor: int) -> int:
        self._open.add(descriptor)
        return descriptor

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)
            # The number may come back as another of ours.
            self._output, self._told, self._control = (
                -1 if number == descriptor else number for number in (self._output, self._told, self._control)
            )


def _verdict(word: bytes, text: str) -> Verdict:
    if word == b"exit":
        return Verdict(code=int(text))
    if word == b"exceeded":
        return Verdict(exceeded=EXCEEDED_MEMORY)
    return Verdict(signal=int(text)) if word == b"signal" else Verdict(refused=text)


def _memory_file(content: bytes) -> int:
    """A file that is nowhere: neither arguments nor environments of commands are to be seen on a disk or in a list of processes."""
    descriptor = os.memfd_create("foliot")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
