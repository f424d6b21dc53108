"""CPU time of trees of processes, with those in them that have ended: wall time is noisy on a machine that others use
as well."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from time import perf_counter

import psutil


def tree_seconds(pid: int) -> float:
    """CPU time of this process and all its descendants, living and ended. A parent knows it for ended children after it
    has waited for them."""
    while True:
        try:
            process = psutil.Process(pid)
            used = [one.cpu_times() for one in (process, *process.children(recursive=True))]
        except psutil.NoSuchProcess as gone:
            if gone.pid == pid:
                return 0.0
            # It ended after its parent was read and before it was: neither has told of its time.
            continue
        return sum(one.user + one.system + one.children_user + one.children_system for one in used)


def machine_seconds() -> float:
    """The time that all cores together were busy, or were taken from this machine by others on its host."""
    used = psutil.cpu_times()
    return float(
        used.user + used.system + used.nice + sum(getattr(used, name, 0.0) for name in ("irq", "softirq", "steal"))
    )


def stolen_seconds() -> float:
    """The time that the host has taken from the cores of this machine, if it is one of several on a host."""
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
        """A job, by name; without the trees that can't be seen from here."""
        return {f"{name}_us": used / jobs * 1e6 for name, used in self._used.items() if self._trees[name]}

    def cores(self) -> dict[str, float]:
        """How many cores each kept busy."""
        return {name: used / self.seconds for name, used in self._used.items() if self._trees[name]}

    def _read(self) -> dict[str, float]:
        return {name: sum(tree_seconds(pid) for pid in pids) for name, pids in self._trees.items()}


class Others:
    """How many cores everything else on the machine kept busy, or on its host took away from it: what disturbs a
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
