"""Measures the CPU time of process trees, including processes that have ended. Wall time is noisy on a shared
machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from time import perf_counter

import psutil


def tree_seconds(pid: int) -> float:
    """The CPU time of this process and all its descendants, running and ended. A parent knows the time of an ended
    child once it has waited for it."""
    while True:
        try:
            process = psutil.Process(pid)
            used = [one.cpu_times() for one in (process, *process.children(recursive=True))]
        except psutil.NoSuchProcess as gone:
            if gone.pid == pid:
                return 0.0
            # It ended between the reading of its parent and its own, so neither reports its time.
            continue
        return sum(one.user + one.system + one.children_user + one.children_system for one in used)


def machine_seconds() -> float:
    """The time that all cores were busy, or were taken from this machine by others on its host."""
    used = psutil.cpu_times()
    return float(
        used.user + used.system + used.nice + sum(getattr(used, name, 0.0) for name in ("irq", "softirq", "steal"))
    )


def stolen_seconds() -> float:
    """The time that the host took from the cores of this machine."""
    return float(getattr(psutil.cpu_times(), "steal", 0.0))


class Meter:
    """The CPU time that named process trees use between `start` and `stop`."""

    def __init__(self, trees: Mapping[str, Iterable[int | None]]) -> None:
        self._trees = {name: [pid for pid in pids if pid is not None] for name, pids in trees.items()}
        self.seconds = 0.0
        self._used: dict[str, float] = {}

    def start(self) -> None:
        self._began = perf_counter()
        self._before = self._read()

    def stop(self) -> None:
        self.seconds = perf_counter() - self._began
        self._used = {name: after - self._before[name] for name, after in self._read().items()}

    def microseconds(self, jobs: int) -> dict[str, float]:
        """CPU time for each job, by tree; without trees that are not visible from here."""
        return {f"{name}_us": used / jobs * 1e6 for name, used in self._used.items() if self._trees[name]}

    def cores(self) -> dict[str, float]:
        """The average number of busy cores, by tree."""
        return {name: used / self.seconds for name, used in self._used.items() if self._trees[name]}

    def _read(self) -> dict[str, float]:
        return {name: sum(tree_seconds(pid) for pid in pids) for name, pids in self._trees.items()}


class Others:
    """The average number of cores that other processes used, or that the host took away: the disturbance of a
    measurement."""

    def __init__(self, postmaster: int | None) -> None:
        self._postmaster = postmaster
        self._began = perf_counter()
        self._before = self._read()

    def cores(self) -> float:
        return max(0.0, self._read() - self._before) / (perf_counter() - self._began)

    def _read(self) -> float:
        ours = tree_seconds(os.getpid())
        if self._postmaster is not None and os.getpid() not in (
            parent.pid for parent in psutil.Process(self._postmaster).parents()
        ):
            ours += tree_seconds(self._postmaster)
        return machine_seconds() - ours
