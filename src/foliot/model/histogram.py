"""Many durations as one value: the number of durations up to each bound, and their sum. Metrics report these."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
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


def quantile_of(counts: Sequence[int], share: float) -> float | None:
    """The duration below which this share lies, from counts like those of a `Histogram`. None if nothing was counted.

    Within a bound, durations are taken to be spread evenly; those beyond the last bound count as that bound.
    """
    rank = share * sum(counts)
    if not any(counts):
        return None
    passed = 0
    for place, count in enumerate(counts[: len(BOUNDS)]):
        if count and passed + count >= rank:
            below = BOUNDS[place - 1] if place else 0.0
            return below + (BOUNDS[place] - below) * (rank - passed) / count
        passed += count
    return BOUNDS[-1]
