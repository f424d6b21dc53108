"""Nights when the clocks change, worked out by hand."""

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest

from foliot.triggers.base import fire_times
from foliot.triggers.cron import parse_cron
from foliot.triggers.dst import DstFold, DstGap
from tests.triggers.oracle import instant_of
from tests.triggers.walking import FOLDS, NEW_YORK, times_of

SPRING, AUTUMN = date(2024, 3, 10), date(2024, 11, 3)


@pytest.mark.parametrize(
    ("expression", "dst_gap", "times"),
    [
        ("30 2 * * *", "shift", ["03:00-0400"]),
        ("30 2 * * *", "skip", []),
        ("0,15,30 2 * * *", "shift", ["03:00-0400"]),
        ("59 1,2 * * *", "shift", ["01:59-0500", "03:00-0400"]),
        ("0 2,3 * * *", "shift", ["03:00-0400"]),
        ("30 2,3 * * *", "shift", ["03:00-0400", "03:30-0400"]),
        ("30 2,3 * * *", "skip", ["03:30-0400"]),
        ("30 */2 * * *", "shift", [f"{hour:02}:30-0{5 if hour < 2 else 4}00" for hour in range(0, 24, 2) if hour != 2]),
    ],
)
def test_new_york_in_the_night_without_two_o_clock(expression: str, dst_gap: DstGap, times: list[str]) -> None:
    assert times_of(expression, "America/New_York", SPRING, dst_gap=dst_gap) == times


@pytest.mark.parametrize(
    ("expression", "dst_fold", "times"),
    [
        ("30 1 * * *", "first", ["01:30-0400"]),
        ("30 1 * * *", "last", ["01:30-0500"]),
        ("30 1 * * *", "both", ["01:30-0400", "01:30-0500"]),
        ("0 1,2 * * *", "first", ["01:00-0400", "02:00-0500"]),
        ("0 1,2 * * *", "last", ["01:00-0500", "02:00-0500"]),
        (
            "0,30 0,1 * * *",
            "both",
            ["00:00-0400", "00:30-0400", "01:00-0400", "01:30-0400", "01:00-0500", "01:30-0500"],
        ),
        ("59 0,1 * * *", "last", ["00:59-0400", "01:59-0500"]),
        ("30 0-2 * * *", "first", ["00:30-0400", "01:30-0400", "02:30-0500"]),
    ],
)
def test_new_york_in_the_night_with_two_one_o_clocks(expression: str, dst_fold: DstFold, times: list[str]) -> None:
    assert times_of(expression, "America/New_York", AUTUMN, dst_fold=dst_fold) == times


@pytest.mark.parametrize("hour", ["*", "?", "*/1"])
@pytest.mark.parametrize("dst_fold", FOLDS)
def test_every_hour_fires_every_real_hour(hour: str, dst_fold: DstFold) -> None:
    for day, hours in ((SPRING, 23), (AUTUMN, 25)):
        trigger = parse_cron(f"0 {hour} * * *", NEW_YORK, dst_fold=dst_fold)
        start = instant_of(day.year, day.month, day.day, zone="America/New_York")
        assert fire_times(trigger, start - 1, hours + 1) == [start + n * 3600 for n in range(hours + 1)]


def test_a_list_follows_real_time_only_if_it_begins_with_a_star() -> None:
    once = [f"{h:02}:30-0{4 if h < 2 else 5}00" for h in range(24)]
    assert times_of("30 2,* * * *", "America/New_York", AUTUMN) == once
    assert times_of("30 *,2 * * *", "America/New_York", AUTUMN) == [*once[:2], "01:30-0500", *once[2:]]


def test_lord_howe_moves_its_clock_by_half_an_hour() -> None:
    spring, autumn = date(2024, 10, 6), date(2024, 4, 7)
    assert times_of("0,15,30,45 2 * * *", "Australia/Lord_Howe", spring) == ["02:30+1100", "02:45+1100"]
    assert times_of("15 2 * * *", "Australia/Lord_Howe", spring) == ["02:30+1100"]
    assert times_of("15 2 * * *", "Australia/Lord_Howe", spring, dst_gap="skip") == []
    assert times_of("15,45 1 * * *", "Australia/Lord_Howe", autumn) == ["01:15+1100", "01:45+1100"]
    assert times_of("15,45 1 * * *", "Australia/Lord_Howe", autumn, dst_fold="last") == ["01:15+1100", "01:45+1030"]
    assert times_of("*/30 * * * *", "Australia/Lord_Howe", autumn)[2:6] == [
        "01:00+1100",
        "01:30+1100",
        "01:30+1030",
        "02:00+1030",
    ]


@pytest.mark.parametrize(
    ("name", "day", "offset"),
    [("America/Santiago", date(2024, 9, 8), "-0300"), ("Africa/Cairo", date(2024, 4, 26), "+0300")],
)
def test_a_missing_midnight_fires_at_one_or_not_at_all(name: str, day: date, offset: str) -> None:
    assert times_of("0 0 * * *", name, day) == [f"01:00{offset}"]
    assert times_of("0 0 * * *", name, day, dst_gap="skip") == []
    assert times_of("30 0 * * *", name, day) == [f"01:00{offset}"]
    assert times_of("0 0 * * *", name, day, days=2) == [f"01:00{offset}", f"00:00{offset}"]


def test_a_day_begins_once_after_a_repeated_last_hour() -> None:
    assert times_of("30 23 * * *", "America/Santiago", date(2024, 4, 6)) == ["23:30-0300"]
    assert times_of("30 23 * * *", "America/Santiago", date(2024, 4, 6), dst_fold="last") == ["23:30-0400"]
    assert times_of("30 23 * * *", "America/Santiago", date(2024, 4, 6), dst_fold="both") == [
        "23:30-0300",
        "23:30-0400",
    ]
    assert times_of("0 0 * * *", "America/Santiago", date(2024, 4, 7), dst_fold="both") == ["00:00-0400"]


def test_a_skipped_day_in_apia_is_shifted_as_one_or_skipped() -> None:
    thirtieth = instant_of(2011, 12, 29, zone="Pacific/Apia")
    for dst_gap, days in (("shift", ["29", "31", "31", "01"]), ("skip", ["29", "31", "01", "02"])):
        trigger = parse_cron("0 9 * * *", ZoneInfo("Pacific/Apia"), dst_gap="shift" if dst_gap == "shift" else "skip")
        found = fire_times(trigger, thirtieth, 4)
        assert [datetime.fromtimestamp(instant, ZoneInfo("Pacific/Apia")).strftime("%d") for instant in found] == days


def test_casablanca_leaves_summer_time_for_ramadan() -> None:
    assert times_of("30 2 * * *", "Africa/Casablanca", date(2025, 2, 23), dst_fold="both") == [
        "02:30+0100",
        "02:30+0000",
    ]
    assert times_of("30 2 * * *", "Africa/Casablanca", date(2025, 4, 6)) == ["03:00+0100"]


def test_kathmandu_is_three_quarters_of_an_hour_off() -> None:
    assert parse_cron("0 9 * * *", ZoneInfo("Asia/Kathmandu")).next_after(instant_of(2024)) == instant_of(
        2024, 1, 1, 3, 15
    )
