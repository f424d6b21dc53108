"""A command's process tree: started by a launcher, read, terminated, and killed as a whole at the end.

The worker holds the output pipe and a connection to a launcher (`launcher_pool.py`). When that connection closes, also
by the worker's death, the launcher kills the tree.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from foliot.clock import SystemClock
from foliot.model.ids import new_id
from foliot.service import own_task
from foliot.worker.executors.processes.containment import LIMIT_FILES, Means
from foliot.worker.executors.processes.launcher.tree import is_removed
from foliot.worker.executors.processes.launcher_pool import (
    LAUNCHER_SECONDS,
    LauncherPool,
    Place,
    encode_plan,
    sealed_file,
)
from foliot.worker.executors.processes.sweeper import SWEEPS, sweep

CHUNK = 65_536
DRAIN_SECONDS = 1.0
END_SECONDS = 5.0
"""The time between SIGTERM and SIGKILL."""
PIPE_CHUNKS = 32
CGROUP_TRIES = 100
SWEEP_SECONDS = 0.01
EXCEEDED_MEMORY = "more memory than `memory_mb` allows"


@dataclass(frozen=True, slots=True)
class Command:
    """A command to start. `limits` are in the units of setrlimit."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str = ""
    stdin: bytes = b""
    limits: Mapping[str, int] = field(default_factory=dict)
    tree_limits: Mapping[str, int] = field(default_factory=dict)
    """Limits for all processes together: `memory` in bytes, `pids`."""
    user: int | None = None
    wrapper: Sequence[str] = ()
    """The bubblewrap command that makes its sandbox."""
    descriptors: Sequence[int] = ()
    """Further descriptors that the command inherits."""
    result_max_bytes: int = 0
    """The size limit of the first of those files. 0: no limit."""
    scratch: Sequence[str] = ()
    """In-memory directories that are private to the command's sandbox."""
    is_concealed: bool = False
    """It conceals its environment, so the mark is passed as an argument too."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the command ended: exactly one of these."""

    code: int = 0
    signal: int | None = None
    refused: str | None = None
    """Why it was not started."""
    exceeded: str | None = None
    """The limit that it was killed for exceeding."""
    has_too_large_result: bool = False
    """It was killed because its result grew too large."""


class ProcessTree:
    """Use it as an async context manager: on exit, no process of the tree is alive."""

    def __init__(self, command: Command, launchers: LauncherPool, on_output: Callable[[bytes], None]) -> None:
        self._clock = SystemClock()
        self._command = command
        self._launchers = launchers
        self._containment = launchers.containment
        self._on_output = on_output
        self._is_wrapped = bool(command.wrapper) or self._containment.means is Means.BUBBLEWRAP
        # In a namespace no process outlives the launcher. Elsewhere the mark finds the command's processes if the
        # launcher is killed.
        self._mark = {} if self._is_wrapped else launchers.new_mark()
        self._place: Place | None = None
        self._output = -1
        self._output_ended = asyncio.Event()
        self._cgroup: Path | None = None
        self._limits_memory = False

    async def __aenter__(self) -> ProcessTree:
        try:
            self._start()
        except OSError:
            await self.end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        # Finish the cleanup even if this task is cancelled meanwhile.
        ending = own_task(self.end())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise

    async def verdict(self) -> Verdict:
        """Waits until the command ends. Its children may still be alive."""
        place = self._started
        answer = place.launcher.verdict
        await asyncio.wait({answer, place.outside.verdict}, return_when=asyncio.FIRST_COMPLETED)
        # If the outer launcher has ended, read the last message of the inner one first.
        place.launcher.read()
        verdict = (
            _verdict(answer.result())
            if answer.done() and answer.result()
            else await self._verdict_without_launcher(place)
        )
        return (
            Verdict(exceeded=EXCEEDED_MEMORY)
            if verdict.signal == signal.SIGKILL and self._ran_out_of_memory()
            else verdict
        )

    @property
    def _started(self) -> Place:
        if self._place is None:
            raise RuntimeError("no command is running: use ProcessTree within `async with`")
        return self._place

    async def _verdict_without_launcher(self, place: Place) -> Verdict:
        """The verdict when the launcher was killed, perhaps by the command."""
        if place.launcher is place.outside:
            status = await place.outside.ended(self._clock)
        else:
            await asyncio.wait([place.outside.verdict])
            ended = _verdict(place.outside.verdict.result() or b"signal 9")
            if ended.refused is not None:
                return ended
            # bubblewrap reports SIGKILL as 128 + 9.
            status = -ended.signal if ended.signal else 128 - ended.code if ended.code > 128 else ended.code
        if not place.launcher.has_begun:
            return Verdict(
                refused=place.bubblewrap_errors or f"the launcher exited with {status} before it started the command"
            )
        return Verdict(signal=-status if status < 0 else signal.SIGKILL)

    def _ran_out_of_memory(self) -> bool:
        """Whether the kernel killed a process of the command's cgroup for lack of memory."""
        if self._cgroup is None or not self._limits_memory:
            return False
        with suppress(OSError):
            return re.search(r"^oom_kill [1-9]", (self._cgroup / "memory.events").read_text(), re.MULTILINE) is not None
        return False

    async def drained(self) -> None:
        """Returns when all output is read, or after a second if a process holds it open."""
        self.read_available()
        if self._output_ended.is_set():
            return
        ended = own_task(self._output_ended.wait())
        try:
            await asyncio.wait([ended], timeout=DRAIN_SECONDS)
        finally:
            ended.cancel()

    def read_available(self) -> None:
        """Reads the output printed so far, at most a pipeful."""
        for _ in range(PIPE_CHUNKS):
            if self._output < 0 or not self._read_output():
                return

    async def terminate(self, seconds: float | None = None) -> None:
        """Sends SIGTERM and waits for the command to end. `end` kills it if it does not."""
        self._started.launcher.terminate()
        # Not asyncio.timeout: in a task that is being cancelled, it raises CancelledError in early releases of Python
        # 3.11.
        ending = own_task(self.verdict())
        try:
            await asyncio.wait([ending], timeout=END_SECONDS if seconds is None else seconds)
        finally:
            ending.cancel()

    async def end(self) -> None:
        """Kills every process of the tree. Returns when all are gone."""
        place, self._place = self._place, None
        if place is not None:
            await self._clear(place)
        if self._cgroup is not None:
            await self._remove_cgroup(self._cgroup)
        self.read_available()
        self._close_output()

    async def _clear(self, place: Place) -> None:
        launcher = place.launcher
        if not launcher.cleared.done():
            launcher.kill()
            await asyncio.wait([launcher.cleared], timeout=LAUNCHER_SECONDS)
        is_clean = launcher.cleared.done() and not launcher.is_lost
        if launcher is place.outside and not is_clean:
            await self._kill_survivors(place)
        await self._launchers.give_back(place, is_clean=is_clean)

    async def _kill_survivors(self, place: Place) -> None:
        """Does the launcher's work if it was killed or stopped, or is slow because the tree is large."""
        leader = place.launcher.leader
        place.outside.kill_process()
        place.outside.close()
        await place.outside.ended(self._clock)
        if leader is not None:
            with suppress(OSError):
                os.killpg(leader, signal.SIGKILL)
        for name, value in self._mark.items():
            await self._sweep(f"{name}={value}".encode())

    async def _sweep(self, mark: bytes) -> None:
        """Sweeps until two sweeps in a row find nothing: a process that was being started gets its mark a moment
        later."""
        empty_sweeps = 0
        for _ in range(SWEEPS):
            empty_sweeps = 0 if sweep(mark) else empty_sweeps + 1
            if empty_sweeps == 2:
                return
            await self._clock.sleep(SWEEP_SECONDS)

    # --- starting

    def _start(self) -> None:
        command, held = self._command, list[int]()
        self._output, output = os.pipe()
        held.append(output)
        os.set_blocking(self._output, False)
        try:
            entrance = self._make_cgroup()
            held += entrance
            stdin = [sealed_file(command.stdin)] if command.stdin else []
            held += stdin
            plan = self._plan(has_entrance=bool(entrance))
            is_in_namespace = self._is_wrapped and not command.wrapper
            self._place = self._launchers.take(
                self._containment.namespace(self._own_shm_bytes) if is_in_namespace else ()
            )
            self._place.launcher.run(plan, [output, *command.descriptors, *entrance, *stdin])
        finally:
            for descriptor in held:
                os.close(descriptor)
        asyncio.get_running_loop().add_reader(self._output, self._read_output)

    def _make_cgroup(self) -> list[int]:
        """Creates the cgroup, if needed, and opens its `cgroup.procs`, which is not visible inside a sandbox."""
        limits = {
            name: value for name, value in self._command.tree_limits.items() if name in self._containment.controllers
        }
        is_means = not self._is_wrapped and self._containment.means is Means.CGROUP
        if self._containment.cgroup is None or not (limits or is_means):
            return []
        self._cgroup = self._containment.cgroup / f"foliot-{new_id()}"
        self._cgroup.mkdir()
        for name, value in limits.items():
            (self._cgroup / LIMIT_FILES[name]).write_text(str(value))
        if "memory" in limits:
            self._limits_memory = True
            # Kill the whole group, or a shell would continue without some of its children. Forbid swap, which is memory
            # too.
            for file, content in (("memory.oom.group", "1"), ("memory.swap.max", "0")):
                with suppress(OSError):
                    (self._cgroup / file).write_text(content)
        return [os.open(self._cgroup / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)]

    @property
    def _own_shm_bytes(self) -> int:
        """The size of the /dev/shm that bubblewrap makes for commands with a memory limit. Launchers of root make one
        for each command instead."""
        is_needed = self._is_wrapped and not self._command.wrapper and os.geteuid() != 0
        return self._command.tree_limits.get("memory", 0) if is_needed else 0

    def _memory_entries(self) -> list[str]:
        """The plan entries for a memory limit. Even with a cgroup, since files in /dev/shm outlive it."""
        limit = self._command.tree_limits.get("memory")
        if limit is None:
            return []
        entries = [] if self._limits_memory else [f"memory={limit}"]
        entries += [f"scratch={path}" for path in self._command.scratch]
        if self._own_shm_bytes:
            entries.append("own_scratch=/dev/shm")
        elif not self._command.wrapper:
            entries += [f"private_shm={limit}", "scratch=/dev/shm"]
        return entries

    def _plan(self, *, has_entrance: bool) -> bytes:
        command = self._command
        entries = [f"{name}={value}" for name, value in command.limits.items()]
        entries.append(f"directory={command.directory}")
        entries += [f"wrapper={word}" for word in command.wrapper]
        entries += [f"mark={name}={value}" for name, value in self._containment.marking.items()]
        if command.user is not None:
            entries.append(f"user={command.user}")
        if not self._is_wrapped and self._cgroup is not None:
            entries.append(f"cgroup={self._cgroup}")
        if command.stdin:
            entries.append("stdin=")
        if has_entrance:
            entries.append("entrance=")
        if command.result_max_bytes:
            entries.append(f"result_max={command.result_max_bytes}")
        entries += self._memory_entries()
        argv = (
            (*command.argv, *(f"{name}={value}" for name, value in self._mark.items()))
            if command.is_concealed
            else command.argv
        )
        return encode_plan(argv, {**command.environment, **self._mark}, command.descriptors, entries)

    # --- reading

    def _read_output(self) -> bool:
        """Whether there was output."""
        try:
            chunk = os.read(self._output, CHUNK)
        except BlockingIOError:
            return False
        if chunk:
            self._on_output(chunk)
        else:
            self._close_output()
            self._output_ended.set()
        return bool(chunk)

    def _close_output(self) -> None:
        if self._output >= 0:
            asyncio.get_running_loop().remove_reader(self._output)
            os.close(self._output)
            self._output = -1

    async def _remove_cgroup(self, cgroup: Path) -> None:
        """Kills the remaining processes, if the launcher was killed, and removes the cgroup."""
        with suppress(OSError):
            (cgroup / "cgroup.kill").write_text("1")
        for _ in range(CGROUP_TRIES):
            if is_removed(bytes(cgroup)):
                return
            # Not empty yet: killed processes take a moment to go.
            await self._clock.sleep(0.01)


def _verdict(message: bytes) -> Verdict:
    word, _, text = message.decode(errors="replace").partition(" ")
    if word == "exit":
        return Verdict(code=int(text))
    if word == "exceeded":
        return Verdict(has_too_large_result=True) if text == "result" else Verdict(exceeded=EXCEEDED_MEMORY)
    return Verdict(signal=int(text)) if word == "signal" else Verdict(refused=text)
