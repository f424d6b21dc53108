"""Tables for people: aligned columns, relative times, and text that can't control a terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import pytest

from foliot.cli.columns import width
from foliot.cli.tables import Cell, at, away, clean, facts, table, word

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_columns_are_aligned_with_any_letters_and_colours() -> None:
    shown = click.unstyle(
        table(
            ("NAME", "STATUS", "N"), [("a", word("active"), "1"), ("日本", word("paused"), "22"), ("e\u0301", "", "3")]
        )
    )
    assert shown.splitlines() == ["NAME  STATUS  N", "a     active  1", "日本  paused  22", "e\u0301             3"]


def test_an_empty_column_is_left_out() -> None:
    assert table(("A", "B", "C"), [("1", "", "3"), ("4", Cell(""), "6")]).splitlines() == ["A  C", "1  3", "4  6"]


def test_unknown_facts_are_left_out() -> None:
    assert facts([("id", "7"), ("reason", None), ("payload", ""), ("status", Cell("ok"))]) == "id      7\nstatus  ok"
    assert facts([]) == ""


@pytest.mark.parametrize(
    ("seconds", "hint"),
    [
        (0, "now"), (0.4, "now"), (-0.4, "now"), (1, "in 1 s"), (-1, "1 s ago"), (59, "in 59 s"), (59.6, "in 1 m"),
        (60, "in 1 m"),
        (149, "in 2 m"), (179, "in 3 m"), (-180, "3 m ago"), (3540, "in 59 m"), (3599, "in 1 h"), (3599.7, "in 1 h"),
        (-7200, "2 h ago"),
        (10_799, "in 3 h"), (84_000, "in 23 h"), (86_399, "in 1 d"), (86_400, "in 1 d"),
        (86_400 * 400, "in 400 d"),
    ],
)  # fmt: skip
def test_relative_times_are_shown(seconds: float, hint: str) -> None:
    assert away((NOW + timedelta(seconds=seconds)).isoformat(), NOW) == hint


def test_times_stay_as_the_server_wrote_them() -> None:
    assert at("2026-03-01T13:03:00+01:00", NOW) == "2026-03-01T13:03:00+01:00 (in 3 m)"
    assert (at(None, NOW), away(None, NOW), away("soon", NOW)) == ("", "", "?")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\a", "\\x1b[2J\\x07"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eevil\u2028", "\\u202eevil\\u2028"),
        ("\udc80", "\\udc80"),
        ("über 日本 \U0001f468\u200d\U0001f469", "über 日本 \U0001f468\u200d\U0001f469"),
    ],
)
def test_control_characters_in_data_do_not_move_the_cursor(text: str, shown: str) -> None:
    assert clean(text) == shown
    assert table(("A",), [(text,)]) == f"A\n{shown}"
    assert facts([("a", text)]) == f"a  {shown}"
    assert clean("a\nb\x1b", keep="\n\t") == "a\nb\\x1b"


def test_width_counts_columns_not_letters() -> None:
    assert [width(text) for text in ("abc", "日本", "e\u0301", "")] == [3, 4, 1, 0]
