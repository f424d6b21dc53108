"""Durations as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.errors import Invalid
from foliot.triggers.durations import UNITS, parse_duration

HUNDRED_YEARS = 3_155_760_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1", 1),
        ("90", 90),
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("1w2d3h4m5s", 788_645),
        ("007s", 7),
        (" 5M ", 300),
        ("0h1m", 60),
        (str(HUNDRED_YEARS), HUNDRED_YEARS),
        ("36525d", HUNDRED_YEARS),
    ],
)
def test_a_duration_is_whole_seconds(text: str, seconds: int) -> None:
    assert parse_duration(text, field="every") == seconds


@pytest.mark.parametrize(
    "text",
    [
        *[
            "",
            " ",
            "s",
            "h1",
            "1x",
            "1.5h",
            "-5m",
            "+5",
            "1e3",
            "five",
            "1h30",
            "P1M",
            "\n",
            "1_000",
            "0x10",
        ],
        *["٣m", "٣", "5\uff4d", "²", "1" * 11, "1" * 10_000, "9999999999m", "1s1s1s1s1s1s"],
    ],
)
def test_an_invalid_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Invalid, match=r"every: can't read .* write it like 90s, 5m, 1h30m or 2d") as caught:
        parse_duration(text, field="every")
    assert caught.value.field == "every"
    assert len(caught.value.detail) < 300


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("1 h", "1h"),
        ("5m 3s", "5m3s"),
        ("5 minutes", "5m"),
        ("1 Hour, 20 secs", "1h20s"),
        ("PT5M", "5m"),
        ("P2W", "2w"),
        ("P1DT2H3M4S", "1d2h3m4s"),
    ],
)
def test_a_duration_in_another_notation_is_refused_with_a_suggestion(text: str, instead: str) -> None:
    with pytest.raises(Invalid, match=f"every: can't read .*; write {instead}$"):
        parse_duration(text, field="every")


@pytest.mark.parametrize("text", ["0", "0s", "0h0m", "3155760001", "36526d", "999999999w", "9999999999"])
def test_zero_and_more_than_a_hundred_years_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match="every: must be between 1 second and 100 years"):
        parse_duration(text, field="every")


@given(
    st.lists(st.tuples(st.integers(min_value=1, max_value=500), st.sampled_from(sorted(UNITS))), min_size=1, max_size=5)
)
def test_the_parts_of_a_duration_add_up(parts: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{unit}" for number, unit in parts)
    assert parse_duration(text, field="every") == sum(number * UNITS[unit] for number, unit in parts)


@given(st.text(max_size=30))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        seconds = parse_duration(text, field="every")
    except Invalid:
        return
    assert 1 <= seconds <= HUNDRED_YEARS
