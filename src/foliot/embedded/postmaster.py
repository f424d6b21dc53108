"""Reads postmaster.pid, judges which processes are at work on a data directory, and ends those that a dead owner left.

A pid is believed only when the process is a postgres of this very directory: pids are reused, above all in containers.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from foliot.clock import Clock
from foliot.errors import EmbeddedPostgresError

# Fast shutdown, immediate shutdown, and what nothing resists; how long each may take.
STOP_STEPS = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))
POLL_SECONDS = 0.01


def recorded_pid(data: Path) -> int | None:
    lines = _postmaster_lines(data)
    return abs(int(lines[0])) if lines and lines[0].lstrip("-").isdecimal() else None


def is_ready(data: Path, pid: int) -> bool:
    lines = _postmaster_lines(data)
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


async def end_leftovers(data: Path, clock: Clock) -> None:
    """Ends what a dead owner, or a dead postmaster, left running here. Two servers on one directory would ruin it."""
    record = data / "postmaster.pid"
    if not record.exists():
        return
    await _end_strangers(data, clock, _living_postmaster, STOP_STEPS)
    # No SIGINT for the rest: to some children of a postmaster it means something else.
    await _end_strangers(data, clock, _living_backends, STOP_STEPS[1:])
    if recorded_pid(data) is None:
        # Emptied by a crash of the machine. PostgreSQL would wait for its author for ever.
        record.unlink(missing_ok=True)


def _postmaster_lines(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []


async def _end_strangers(
    data: Path, clock: Clock, find: Callable[[Path], Iterable[int]], steps: Iterable[tuple[signal.Signals, float]]
) -> None:
    pids: list[int] = []
    for number, seconds in steps:
        deadline = clock.monotonic() + seconds
        for pid in find(data):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        while pids := list(find(data)):
            if clock.monotonic() > deadline:
                break
            await clock.sleep(POLL_SECONDS)
        else:
            return
    raise EmbeddedPostgresError(f"{data} is still in use by process {pids[0]}, which does not end")


def _living_postmaster(data: Path) -> list[int]:
    """The postmaster of this directory, if it lives. A zombie has no command line and so counts as dead."""
    pid = recorded_pid(data)
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
