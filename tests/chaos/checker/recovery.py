"""Invariants of recovery: throughput after a fault, work after PostgreSQL is back, memory over time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from statistics import median

from tests.chaos.checker.history import SECOND, Fault, History, Memory
from tests.chaos.checker.invariant import invariant

DATABASE_FAULTS = ("crash_postgres", "read_only", "full_disk", "promote")
WINDOW = 5 * SECOND
STEP = SECOND // 4
RECOVERY_SECONDS = 30
RESUMING_SECONDS = 5
PROMOTED_SECONDS = 15
"""After a standby has become the primary."""
LONG_LIVED = 300 * SECOND
GROWTH_SHARE = 0.10
GROWTH_BYTES = 12_000_000


class Throughput:
    """The number of runs that ended, and when."""

    def __init__(self, history: History) -> None:
        self._ends = sorted(change.at for change in history.changes if change.kind == "finish")
        self._quiet_at = history.settings.quiet_at
        first = self._ends[0] if self._ends else self._quiet_at
        # Ignores seconds in which nothing ended: otherwise a long outage would count as usual.
        counts = [count for at in range(first, self._quiet_at - WINDOW, WINDOW) if (count := self.after(at))]
        self.usual = sorted(counts)[len(counts) // 2] if counts else 0
        """In five seconds. 0: there is nothing to compare with."""
        seconds = (self._quiet_at - first) / SECOND
        self.average = bisect_left(self._ends, self._quiet_at) / seconds if seconds > 0 else 0.0
        """In one second, from the first end until the load ended, with all outages."""

    def after(self, at: int) -> int:
        """In the five seconds after this instant."""
        return bisect_left(self._ends, at + WINDOW) - bisect_left(self._ends, at)

    def next_end(self, at: int) -> int | None:
        place = bisect_left(self._ends, at)
        return self._ends[place] if place < len(self._ends) else None

    def recovered_at(self, at: int) -> int | None:
        """The instant from which half the usual number of runs end in five seconds. None: not before the load ended."""
        return next(
            (when for when in range(at, self._quiet_at - WINDOW, STEP) if self.after(when) >= self.usual / 2), None
        )


def healed(history: History) -> Iterator[Fault]:
    return (fault for fault in history.faults if fault.healed_at)


@invariant(37)
def throughput_recovers(history: History) -> Iterator[str]:
    """Half a minute after a fault, throughput is at least half of normal."""
    throughput = Throughput(history)
    last = history.settings.quiet_at - WINDOW
    if throughput.usual:
        for fault in healed(history):
            at = throughput.recovered_at(fault.healed_at)
            until = last if at is None else at
            seconds = (until - fault.healed_at) / SECOND
            excused = history.broken_seconds(fault.healed_at, until) + history.taken_seconds(fault.healed_at, until)
            if seconds > RECOVERY_SECONDS + excused:
                yield (
                    f"{seconds:.1f} s after {fault.kind} of {fault.target} at {fault.since} "
                    f"{'still ' * (at is None)}few runs ended"
                )


@invariant(38)
def work_resumes_with_postgres(history: History) -> Iterator[str]:
    """Five seconds after PostgreSQL returns, 15 after a standby is promoted, a run has ended."""
    throughput = Throughput(history)
    if throughput.usual:
        for fault in healed(history):
            if fault.kind in DATABASE_FAULTS:
                at = throughput.next_end(fault.healed_at)
                # Clients send nothing after that.
                until = history.settings.quiet_at if at is None else min(at, history.settings.quiet_at)
                seconds = (until - fault.healed_at) / SECOND
                excused = history.broken_seconds(fault.healed_at, until) + history.taken_seconds(fault.healed_at, until)
                if seconds > (PROMOTED_SECONDS if fault.kind == "promote" else RESUMING_SECONDS) + excused:
                    yield (
                        f"after {fault.kind} at {fault.since}, which was over at {fault.healed_at}, no run ended "
                        f"for {seconds:.1f} s"
                    )


@invariant(39)
def memory_stays(history: History) -> Iterator[str]:
    """After warming up, no process grows by more than a tenth or 12 MB in five minutes."""
    samples: dict[tuple[str, int], list[Memory]] = {}
    for sample in history.memory:
        samples.setdefault((sample.target, sample.process), []).append(sample)
    for (target, process), taken in samples.items():
        first, length = taken[0].at, taken[-1].at - taken[0].at
        if length >= LONG_LIVED:
            # Compares the second and the last fifth of its life; one large batch does not change a median.
            fifth = partial(_between, taken, first, length)
            early, late = fifth(0.2, 0.4), fifth(0.8, 1.0)
            if late > early + max(GROWTH_SHARE * early, GROWTH_BYTES):
                yield (
                    f"{target} ({process}) grew from {early / 1e6:.1f} to {late / 1e6:.1f} MB in "
                    f"{length / SECOND:.0f} s"
                )


def _between(taken: list[Memory], first: int, length: int, begin: float, end: float) -> float:
    return median([sample.bytes for sample in taken if begin * length <= sample.at - first <= end * length])
