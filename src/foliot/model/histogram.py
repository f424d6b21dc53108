"""Many durations as one value: the number of durations up to each bound, and their sum. Metrics report these."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)


@dataclass(frozen=True, slots=True)
class Histogram:
    counts: tuple[int, ...] = ()
    """One count for each bound, and one for durations beyond the last. Empty if nothing was measured."""
    seconds: float = 0.0


EMPTY_HISTOGRAM = Histogram()


def histogram_of(durations: Iterable[float]) -> Histogram:
    counts, total = [0] * (len(BOUNDS) + 1), 0.0
    for seconds in durations:
        # Two clocks may disagree slightly, so a negative duration counts as zero.
        counts[bisect_left(BOUNDS, seconds)] += 1
        total += max(seconds, 0.0)
    return Histogram(tuple(counts), total)
