"""Kills what bears a mark in its environment or as an argument: run as `python -I -S sweeper.py MARK` by `guard.py`,
once a worker is gone.

A mark may go on after a dot: the worker's own is followed by the number of a command, so that one command can be looked
for.

It imports next to nothing.
"""

from __future__ import annotations

import os
import select
import signal
import sys

MARK_VARIABLE = "FOLIOT_GUARD"
SWEEPS = 30
PAUSE_SECONDS = 0.1
"""Between two sweeps: what was about to be started when the worker died gets its mark by exec."""


def main() -> None:
    mark = f"{MARK_VARIABLE}={sys.argv[1]}".encode()
    for _ in range(SWEEPS):
        sweep(mark)
        select.select([], [], [], PAUSE_SECONDS)


def sweep(mark: bytes) -> bool:
    """Whether there was anything to kill."""
    found = bearers_of(mark)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            # Gone by itself.
            continue
    return bool(found)


def bearers_of(mark: bytes) -> list[int]:
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        if any(entry == mark or entry.startswith(mark + b".") for entry in words_of(name)):
            found.append(int(name))
    return found


def words_of(process: str) -> list[bytes]:
    found = []
    # Arguments stay readable where a process conceals its environment.
    for what in ("environ", "cmdline"):
        try:
            with open(f"/proc/{process}/{what}", "rb") as file:  # noqa: PTH123
                found += file.read().split(b"\0")
        except OSError:
            # Gone, or somebody else's.
            continue
    return found


if __name__ == "__main__":
    main()
