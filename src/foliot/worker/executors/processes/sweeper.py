"""Kills every process that carries a mark in its environment or arguments.

`orphan_cleanup.py` runs it as `python -I -S sweeper.py MARK` once a worker is gone. The mark of a command is the
worker's mark, a dot, and a number, so that a sweep can also find the processes of one command.

This module imports as little as possible.
"""

from __future__ import annotations

import os
import select
import signal
import sys

MARK_VARIABLE = "FOLIOT_GUARD"
SWEEPS = 30
PAUSE_SECONDS = 0.1
"""The pause between two sweeps: a process that was being started when the worker died gets its mark at exec."""


def main() -> None:
    mark = f"{MARK_VARIABLE}={sys.argv[1]}".encode()
    for _ in range(SWEEPS):
        sweep(mark)
        select.select([], [], [], PAUSE_SECONDS)


def sweep(mark: bytes) -> bool:
    """Kills the marked processes. Returns whether there were any."""
    found = processes_marked(mark)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            # It has ended.
            continue
    return bool(found)


def processes_marked(mark: bytes) -> list[int]:
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        if any(entry == mark or entry.startswith(mark + b".") for entry in environment_and_arguments(name)):
            found.append(int(name))
    return found


def environment_and_arguments(process: str) -> list[bytes]:
    found = []
    # A process that conceals its environment still shows its arguments.
    for what in ("environ", "cmdline"):
        try:
            with open(f"/proc/{process}/{what}", "rb") as file:  # noqa: PTH123
                found += file.read().split(b"\0")
        except OSError:
            # It has ended, or belongs to another user.
            continue
    return found


if __name__ == "__main__":
    main()
