"""Measures how much of the machine the host and other processes take, as `benchmarks/cpu.py` does for a measurement."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.chaos.checker.history import SECOND, Taken
from tests.chaos.recorder import monotonic_us

PROCESSES = Path("/proc")
TICK = 1 / os.sysconf("SC_CLK_TCK")
STEAL = 8
"""The column of /proc/stat, counted from the name of the core."""


class Process(NamedTuple):
    parent: int
    began: int
    """With its id, it names a process once and for all."""
    busy: int
    """In ticks of the kernel."""


class Machine:
    def __init__(self, root: int) -> None:
        """`root`: the process that is ours, with all that it has ever started."""
        self._root = root
        self._ours: set[tuple[int, int]] = set()
        self._at, self._stolen, self._others = monotonic_us(), stolen_by_core(), self._read_others()

    def sample(self) -> Taken:
        """Since the last sample."""
        since, stolen, others = self._at, self._stolen, self._others
        self._at, self._stolen, self._others = monotonic_us(), stolen_by_core(), self._read_others()
        seconds = max(self._at - since, 1) / SECOND
        used = sum(busy - others[key] for key, busy in self._others.items() if key in others)
        return Taken(
            since,
            max(self._at, since + 1),
            max(after - before for before, after in zip(stolen, self._stolen, strict=True)) * TICK / seconds,
            used * TICK / seconds / len(stolen),
        )

    def _read_others(self) -> dict[tuple[int, int], int]:
        processes = dict(read_processes())
        ours = {self._root} & processes.keys()
        # Those that outlived their parents are known from before.
        ours |= {pid for pid, one in processes.items() if (pid, one.began) in self._ours}
        is_growing = True
        while is_growing:
            more = {pid for pid, one in processes.items() if one.parent in ours and pid not in ours}
            ours |= more
            is_growing = bool(more)
        self._ours = {(pid, processes[pid].began) for pid in ours}
        return {(pid, one.began): one.busy for pid, one in processes.items() if pid not in ours}


def stolen_by_core() -> list[int]:
    """In ticks."""
    lines = (PROCESSES / "stat").read_text().splitlines()
    return [int(line.split()[STEAL]) for line in lines if line.startswith("cpu") and line[3].isdigit()]


def read_processes() -> Iterator[tuple[int, Process]]:
    for place in PROCESSES.iterdir():
        if place.name.isdigit():
            with suppress(OSError):
                # The name of a program may contain anything.
                fields = (place / "stat").read_text().rpartition(")")[2].split()
                yield int(place.name), Process(int(fields[1]), int(fields[19]), int(fields[11]) + int(fields[12]))
