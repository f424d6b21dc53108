"""Tables fit the terminal: columns are cropped, shortened, wrapped or left out."""

from __future__ import annotations

import pytest

from foliot.cli.columns import Column, cropped, short_ids, terminal_columns, width
from foliot.cli.tables import table

FIRST, SECOND = "01a1f033-4f6c-7433-9c47-78fad2603f13", "01a1f033-4f6c-7433-8b11-edeca91871cb"
OTHER = "01a1f033-5000-7000-9c47-78fad2603f13"
COLUMNS = (
    Column("RUN", "id"),
    "STATUS",
    Column("NAME", "text", 1),
    Column("QUEUE", "text", 2),
    Column("WHY", "wrapped"),
)
ROW = (OTHER, "completed", "a-rather-long-name-of-a-run", "a-long-name-of-a-queue", "because " * 12)


@pytest.mark.parametrize("room", [40, 60, 79, 100, 150, 300])
def test_no_line_is_wider_than_the_terminal(room: int) -> None:
    shown = table(COLUMNS, [ROW, (FIRST, "failed", "", "q", "")], room=room)
    assert max(map(width, shown.splitlines())) <= max(room, 68)


def test_without_a_limit_nothing_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    shown = table(COLUMNS, [ROW])
    assert OTHER in shown
    assert "because " * 11 in shown


def test_with_enough_room_ids_stay_whole() -> None:
    assert FIRST in table((Column("RUN", "id"), "STATUS"), [(FIRST, "failed")], room=79)


def test_optional_columns_are_dropped_before_others_become_unreadable() -> None:
    header = table(COLUMNS, [ROW], room=85).splitlines()[0].split()
    assert header == ["RUN", "STATUS", "NAME", "WHY"]


def test_the_last_column_takes_several_lines() -> None:
    shown = table(("A", Column("WHY", "wrapped")), [("1", "one two three four five six seven eight nine ten")], room=40)
    assert shown.splitlines()[1:] == ["1  one two three four five six seven", "   eight nine ten"]


def test_short_ids_stay_distinct() -> None:
    assert short_ids([FIRST, OTHER, "mail", ""]) == ["01a1f033-4f6c-7433", "01a1f033-5000-7000", "mail", ""]
    first, second = short_ids([FIRST, SECOND])
    assert (FIRST.startswith(first), SECOND.startswith(second), first != second) == (True, True, True)
    assert short_ids([FIRST, FIRST]) == ["01a1f033-4f6c-7433"] * 2


def test_text_is_cropped_by_display_width() -> None:
    assert [cropped("abcdef", 6), cropped("abcdef", 5), cropped("日本日本", 5)] == ["abcdef", "abcd…", "日本…"]


def test_columns_of_the_environment_count_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert terminal_columns() == 79
    monkeypatch.setenv("COLUMNS", "0")
    assert terminal_columns() is None
