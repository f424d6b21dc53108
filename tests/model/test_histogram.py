"""Durations in a histogram, and the quantiles that it gives back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.model.histogram import BOUNDS, histogram_of, quantile_of

DURATIONS = st.lists(st.floats(0, 10_000), min_size=1, max_size=50)


@given(DURATIONS)
def test_every_duration_is_counted_at_its_bound(durations: list[float]) -> None:
    found = histogram_of(durations)
    assert len(found.counts) == len(BOUNDS) + 1
    for place, bound in enumerate(BOUNDS):
        assert sum(found.counts[: place + 1]) == sum(seconds <= bound for seconds in durations)
    assert found.seconds == pytest.approx(sum(durations))


@given(DURATIONS, st.floats(0.01, 1))
def test_a_quantile_is_within_the_bound_of_its_duration(durations: list[float], share: float) -> None:
    found = quantile_of(histogram_of(durations).counts, share)
    assert found is not None
    shorter = sum(seconds <= found for seconds in durations)
    assert 0 <= found <= BOUNDS[-1]
    assert found == BOUNDS[-1] or shorter <= len(durations)


def test_a_quantile_is_interpolated_within_its_bound() -> None:
    counts = histogram_of([0.6] * 4).counts
    assert quantile_of(counts, 0.5) == 0.75
    assert quantile_of(counts, 1.0) == 1.0
    assert quantile_of(histogram_of([]).counts, 0.5) is None
    assert quantile_of(histogram_of([99_999.0]).counts, 0.5) == BOUNDS[-1]


def test_a_negative_duration_counts_as_zero() -> None:
    found = histogram_of([-0.2])
    assert (found.counts[0], found.seconds) == (1, 0.0)
