"""Ranges of numbers and durations, as filters write them."""

from __future__ import annotations

import pytest

from foliot.api.requests.ranges import length_range, number_range
from foliot.errors import Invalid


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (None, None)),
        ("2", (2, 2)),
        (">1", (2, None)),
        (">=1", (1, None)),
        ("<3", (None, 2)),
        ("<=3", (None, 3)),
        ("1..3", (1, 3)),
        ("3..1", (1, 3)),
        ("-5..-1", (-5, -1)),
    ],
)
def test_numbers(text: str, expected: tuple[int | None, int | None]) -> None:
    assert number_range(text, "attempt") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (None, None)),
        ("30s", (30, None)),
        (">30", (30, None)),
        ("<500ms", (None, 0.5)),
        ("<=1.5h", (None, 5400)),
        ("1m..5m", (60, 300)),
        ("2d..1d", (86_400, 172_800)),
    ],
)
def test_durations(text: str, expected: tuple[float | None, float | None]) -> None:
    assert length_range(text, "duration") == expected


@pytest.mark.parametrize("text", ["x", ">", "1..", "..2", "1...2", "=3", ">30s", "1 ", "9999999999"])
def test_malformed_number_ranges_are_refused(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        number_range(text, "attempt")
    assert refused.value.field == "attempt"


@pytest.mark.parametrize("text", ["-1s", "1w", "1h30m", ">", "5 m", "1.2345s"])
def test_malformed_duration_ranges_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match="write it like"):
        length_range(text, "duration")
