"""Many durations as one value: how many there were up to each bound, and their sum. What histograms are made of."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)


@dataclass(frozen=True, slots=True)
class Spread:
    counts: tuple[int, ...] = ()
    """One for each bound, and one for what lies beyond the last. Empty: nothing was measured."""
    seconds: float = 0.0


NO_SPREAD = Spread()


def spread_of(durations: Iterable[float]) -> Spread:
    counts, total = [0] * (len(BOUNDS) + 1), 0.0
    for seconds in durations:
        # Two clocks may disagree by a moment; less than nothing is nothing.
        counts[bisect_left(BOUNDS, seconds)] += 1
        total += max(seconds, 0.0)
    return Spread(tuple(counts), total)
