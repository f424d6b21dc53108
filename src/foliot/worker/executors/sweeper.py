"""Kills what bears a mark in its environment: run as `python -I -S sweeper.py MARK` once a worker is gone; see `guard.py` for why.

A mark may go on after a dot: the worker's own is followed by the number of a command, so that one command can be looked for.

It imports next to nothing.
"""

from __future__ import annotations

import os
import select
import signal
import sys

VARIABLE = "FOLIOT_GUARD"
SWEEPS = 30
PAUSE_SECONDS = 0.1
"""Between two sweeps: what was about to be started when the worker died gets its mark by exec."""


def main() -> None:
    mark = f"{VARIABLE}={sys.argv[1]}".encode()
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
        try:
            with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                environment = file.read()
        except OSError:
            # Gone, or somebody else's.
            continue
        if any(entry == mark or entry.startswith(mark + b".") for entry in environment.split(b"\0")):
            found.append(int(name))
    return found


if __name__ == "__main__":
    main()
