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
        self.ours: dict[tuple[int, int], int] = {}
        """Our processes, each with the time for which it was busy."""
        self._read()

    def sample(self) -> Taken:
        """Since the last sample. Processes that have ended are ours no more: each costs a moment of truth."""
        since, busy, stolen, before = self._at, self._busy, self._stolen, self.ours
        self._read()
        seconds = max(self._at - since, 1) / SECOND
        used = sum(ticks - before.get(key, 0) for key, ticks in self.ours.items())
        others = max(0, self._busy - busy - used)
        return Taken(
            since,
            max(self._at, since + 1),
            max(after - before for before, after in zip(stolen, self._stolen, strict=True)) * TICK / seconds,
            others * TICK / seconds / len(stolen),
        )

    def _read(self) -> None:
        self._at = monotonic_us()
        self._stolen, self._busy = stolen_by_core(), busy_on_all_cores()
        processes = dict(read_processes())
        ours = {self._root} & processes.keys()
        # Processes that outlived their parents are known from before.
        ours |= {pid for pid, one in processes.items() if (pid, one.began) in self.ours}
        is_growing = True
        while is_growing:
            more = {pid for pid, one in processes.items() if one.parent in ours and pid not in ours}
            ours |= more
            is_growing = bool(more)
        self.ours = {(pid, processes[pid].began): processes[pid].busy for pid in ours}


def busy_on_all_cores() -> int:
    """In ticks: for users, nice users, the system and interrupts."""
    fields = [int(field) for field in (PROCESSES / "stat").read_text().split("\n", 1)[0].split()[1:]]
    return sum(fields[place] for place in (0, 1, 2, 5, 6))


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
