"""Kills what bears a mark in its environment: run as `python -I -S sweeper.py MARK` once a worker is gone; see `guard.py` for why.

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
        for pid in bearers_of(mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                # Gone by itself.
                continue
        select.select([], [], [], PAUSE_SECONDS)


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
        if mark in environment.split(b"\0"):
            found.append(int(name))
    return found


if __name__ == "__main__":
    main()
