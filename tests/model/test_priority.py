"""The levels of priority that a broker keeps apart."""

from __future__ import annotations

import pytest

from foliot.model.priority import LEVELS, PRIORITY_MAX, PRIORITY_MIN, aging_microseconds, level_of


@pytest.mark.parametrize(
    ("priority", "level"),
    [(PRIORITY_MAX, "critical"), (10, "critical"), (9, "high"), (1, "high"), (0, "normal"), (-1, "low")],
)
def test_a_priority_has_a_level(priority: int, level: str) -> None:
    assert level_of(priority) == level


def test_levels_follow_the_order_of_priorities() -> None:
    places = [LEVELS.index(level_of(priority)) for priority in range(PRIORITY_MIN, PRIORITY_MAX + 1)]
    assert places == sorted(places, reverse=True)
    assert set(places) == set(range(len(LEVELS)))
    assert aging_microseconds(1.5) == 1_500_000
