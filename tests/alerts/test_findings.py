"""Patterns of names in the scope of a rule."""

from __future__ import annotations

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from foliot.alerts.findings import fits


@given(st.text("ab*", max_size=8), st.text("ab\n", max_size=10))
def test_a_star_stands_for_any_text(pattern: str, name: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
    assert fits(pattern, name) == expected


def test_no_pattern_fits_everything() -> None:
    assert fits(None, "anything")
    assert not fits("", "anything")


def test_a_pattern_of_many_stars_costs_no_time() -> None:
    began = time.thread_time()
    assert not fits("*a" * 100 + "*b", "a" * 10_000)
    assert time.thread_time() - began < 5
