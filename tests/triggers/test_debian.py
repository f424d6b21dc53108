"""Nights when the clocks change, compared with Debian's cron: recorded starts of its daemon, and its loop."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import pytest

from foliot.triggers.base import fire_times
from foliot.triggers.cron import parse_cron
from tests.triggers import oracle
from tests.triggers.oracle import DAY, instant_of

BERLIN = ZoneInfo("Europe/Berlin")
# The clocks of Berlin skip 02:00 to 03:00 on the first of these days and repeat it on the second.
SPRING, AUTUMN = date(2026, 3, 29), date(2026, 10, 25)


# Debian 12's cron (3.0pl1-162) started its jobs at these times, from 01:26 to 04:00, with its clock set and sped up by
# libfaketime. In the gap it started a job several times in one minute, once for each of its times that the gap held;
# that is one fire here.
OBSERVED = [
    ("*/30 * * * *", SPRING, ["01:30+0100", "03:00+0200", "03:30+0200", "04:00+0200"]),
    ("30 * * * *", SPRING, ["01:30+0100", "03:30+0200"]),
    ("@hourly", SPRING, ["03:00+0200", "04:00+0200"]),
    ("0 1-6 * * *", SPRING, ["03:00+0200", "04:00+0200"]),
    ("30 2 * * *", SPRING, ["03:00+0200"]),
    ("0,20,40 2 * * *", SPRING, ["03:00+0200"]),
    ("*/20 2 * * *", SPRING, []),
    ("15 */2 * * *", SPRING, []),
    ("15 0-23/2 * * *", SPRING, ["03:00+0200"]),
    ("45 *,2 * * *", SPRING, ["01:45+0100", "03:45+0200"]),
    ("45 2,* * * *", SPRING, ["01:45+0100", "03:00+0200", "03:45+0200"]),
    (
        "*/30 * * * *",
        AUTUMN,
        [
            "01:30+0200",
            "02:00+0200",
            "02:30+0200",
            "02:00+0100",
            "02:30+0100",
            "03:00+0100",
            "03:30+0100",
            "04:00+0100",
        ],
    ),
    ("30 * * * *", AUTUMN, ["01:30+0200", "02:30+0200", "02:30+0100", "03:30+0100"]),
    ("@hourly", AUTUMN, ["02:00+0200", "02:00+0100", "03:00+0100", "04:00+0100"]),
    ("0 1-6 * * *", AUTUMN, ["02:00+0200", "03:00+0100", "04:00+0100"]),
    ("30 2 * * *", AUTUMN, ["02:30+0200"]),
    ("0,20,40 2 * * *", AUTUMN, ["02:00+0200", "02:20+0200", "02:40+0200"]),
    ("*/20 2 * * *", AUTUMN, ["02:00+0200", "02:20+0200", "02:40+0200", "02:00+0100", "02:20+0100", "02:40+0100"]),
    ("15 */2 * * *", AUTUMN, ["02:15+0200", "02:15+0100"]),
    ("15 0-23/2 * * *", AUTUMN, ["02:15+0200"]),
    ("45 *,2 * * *", AUTUMN, ["01:45+0200", "02:45+0200", "02:45+0100", "03:45+0100"]),
    ("45 2,* * * *", AUTUMN, ["01:45+0200", "02:45+0200", "03:45+0100"]),
]


def fires_between(expression: str, start: int, end: int, zone: ZoneInfo) -> list[int]:
    return [
        instant
        for instant in fire_times(parse_cron(expression, zone), start - 1, (end - start) // 60 + 1)
        if instant <= end
    ]


@pytest.mark.parametrize(("expression", "day", "times"), OBSERVED)
def test_ticks_equal_the_recorded_starts_of_the_daemon(expression: str, day: date, times: list[str]) -> None:
    start = instant_of(day.year, day.month, day.day, 1, 26, zone="Europe/Berlin")
    end = instant_of(day.year, day.month, day.day, 4, zone="Europe/Berlin")
    found = fires_between(expression, start, end, BERLIN)
    assert [datetime.fromtimestamp(instant, BERLIN).strftime("%H:%M%z") for instant in found] == times


@pytest.mark.parametrize("day", [SPRING, AUTUMN])
def test_a_job_of_every_minute_fires_every_minute_of_both_nights(day: date) -> None:
    start = instant_of(day.year, day.month, day.day, 1, 26, zone="Europe/Berlin")
    end = instant_of(day.year, day.month, day.day, 4, zone="Europe/Berlin")
    assert fires_between("* 1-6 * * *", start, end, BERLIN) == list(range(start, end + 1, 60))


# The daemon's loop, for any other expression and zone


def daemon(expression: str, zone: ZoneInfo, start: int, end: int) -> Iterator[int]:
    """Every minute it compares the local time with a clock of its own, which advances only after the jobs of a minute
    have been handled."""
    judge = oracle.Expression.read(expression)
    hours, minutes, _ = judge.times()
    is_wild = expression.split()[0].startswith("*") or expression.split()[1].startswith("*")

    @lru_cache
    def is_day(day: int) -> bool:
        return judge.names_day(datetime.fromtimestamp(day * DAY, UTC).date())

    def is_named(minute: int) -> bool:
        return minute % 60 in minutes and minute // 60 % 24 in hours and is_day(minute // 1440)

    own: int | None = None
    for instant in range(start, end + 1, 60):
        offset = datetime.fromtimestamp(instant, zone).utcoffset()
        wall = (instant + (int(offset.total_seconds()) if offset else 0)) // 60
        behind = 1 if own is None else wall - own
        if 0 < behind <= 5:
            due = [True] * is_named(wall)
        elif behind > 0:
            # The clock went forward: jobs with a star follow the new time; others run for each minute that was left
            # out.
            missed = [minute for minute in range(wall - behind + 1, wall + 1) if is_named(minute)]
            due = [True] * (is_named(wall) if is_wild else len(missed))
        else:
            # The clock went back: jobs with a star follow the new time; others have already run.
            due = [True] * (is_wild and is_named(wall))
        if behind > 0:
            own = wall
        if due:
            yield instant


@pytest.mark.parametrize(
    "zone", [zone for zone in oracle.ZONES if any(zone is other for other, _ in oracle.transitions())], ids=str
)
def test_around_every_transition_ticks_equal_the_loop_of_the_daemon(zone: ZoneInfo) -> None:
    chance = random.Random(f"daemon {zone.key}")
    hours = [
        "*",
        "*/2",
        "*/3",
        "0",
        "1",
        "2",
        "23",
        "0-3",
        "1,2",
        "2-3",
        "22-23",
        "0,23",
        "1-4/2",
        "23,0-2",
        "*,2",
        "2,*",
        "0-23",
    ]
    for _, instant in (pair for pair in oracle.transitions() if pair[0] is zone):
        for _ in range(3):
            minute = oracle.random_crontab_field(chance, 0, 59, 0.2)
            day, weekday = (
                chance.choice(["*", "*", "*", "1-15", "*/2"]),
                chance.choice(["*", "*", "SUN", "SAT,SUN", "5-7"]),
            )
            expression = f"{minute} {chance.choice(hours)} {day} * {weekday}"
            start, end = instant - DAY // 2, instant + DAY // 2
            assert fires_between(expression, start, end, zone) == list(daemon(expression, zone, start, end)), (
                f"{expression} {zone} {instant}"
            )
