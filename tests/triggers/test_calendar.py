"""Calendars: no tick on an excluded day, and moved ticks keep their time of day. Compared with a walk over the days."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foliot.triggers.base import LATEST, Trigger, fire_times
from foliot.triggers.calendar import Calendar, CalendarTrigger, OnExcluded
from foliot.triggers.composite import OnceTrigger, UnionTrigger
from foliot.triggers.cron import parse_cron
from foliot.triggers.dst import WallPolicy
from foliot.triggers.interval import IntervalTrigger
from tests.support.steps import steps_of
from tests.triggers import oracle
from tests.triggers.oracle import DAY, instant_of

UTC_ZONE = ZoneInfo("UTC")
NEW_YORK = ZoneInfo("America/New_York")
WEEKEND = frozenset({5, 6})
ALL_WEEK = frozenset(range(7))
CHRISTMAS = date(2024, 12, 25)
START = instant_of(2024)


def walls_of(trigger: Trigger, after: int, count: int, zone: ZoneInfo = NEW_YORK) -> list[str]:
    return [
        datetime.fromtimestamp(instant, zone).strftime("%a %m-%d %H:%M")
        for instant in fire_times(trigger, after, count)
    ]


def judged(inner: list[int], calendar: Calendar, on_excluded: OnExcluded) -> list[int]:
    """Each tick by itself: its day, or while that is excluded, the next day."""
    found = set()
    for instant in inner:
        wall = datetime.fromtimestamp(instant, calendar.zone).replace(tzinfo=None)
        day = wall.date()
        while day.weekday() in calendar.weekdays or day in calendar.dates:
            day += timedelta(days=1)
        if day == wall.date():
            found.add(instant)
        elif on_excluded == "move":
            found.add(oracle.instant_at(datetime.combine(day, wall.time()), calendar.zone))
    return sorted(found)


# Examples


def test_a_tick_on_an_excluded_day_is_skipped() -> None:
    trigger = CalendarTrigger(parse_cron("0 9 * * *", NEW_YORK), Calendar(NEW_YORK, frozenset({CHRISTMAS}), WEEKEND))
    assert walls_of(trigger, instant_of(2024, 12, 19, 20), 4) == [
        "Fri 12-20 09:00",
        "Mon 12-23 09:00",
        "Tue 12-24 09:00",
        "Thu 12-26 09:00",
    ]


def test_a_tick_on_an_excluded_day_moves_to_the_same_time_of_the_next_allowed_day() -> None:
    monthly = CalendarTrigger(parse_cron("30 9 1 * *", NEW_YORK), Calendar(NEW_YORK, weekdays=WEEKEND), "move")
    assert walls_of(monthly, instant_of(2024, 5, 15), 4) == [
        "Mon 06-03 09:30",
        "Mon 07-01 09:30",
        "Thu 08-01 09:30",
        "Mon 09-02 09:30",
    ]


def test_ticks_moved_onto_others_are_merged() -> None:
    daily = CalendarTrigger(parse_cron("0 9 * * *", NEW_YORK), Calendar(NEW_YORK, weekdays=WEEKEND), "move")
    assert walls_of(daily, instant_of(2024, 6, 6, 20), 3) == ["Fri 06-07 09:00", "Mon 06-10 09:00", "Tue 06-11 09:00"]


def test_moved_ticks_are_in_order_with_others() -> None:
    inner = UnionTrigger((parse_cron("0 9,17 * * SAT", NEW_YORK), parse_cron("0 12,20 * * SUN", NEW_YORK)))
    trigger = CalendarTrigger(inner, Calendar(NEW_YORK, weekdays=frozenset({5})), "move")
    assert walls_of(trigger, instant_of(2024, 6, 7, 22), 4) == [
        f"Sun 06-09 {hour}:00" for hour in ("09", "12", "17", "20")
    ]


@pytest.mark.parametrize("day", [date(2024, 3, 10), date(2024, 11, 3)])
def test_a_tick_moved_from_a_day_of_a_clock_change_keeps_its_local_time(day: date) -> None:
    """That Sunday is an hour shorter or longer than the Monday to which its tick moves."""
    sundays = CalendarTrigger(parse_cron("30 9 * * SUN", NEW_YORK), Calendar(NEW_YORK, weekdays=WEEKEND), "move")
    monday = day + timedelta(days=1)
    assert walls_of(sundays, instant_of(day.year, day.month, day.day), 1) == [f"{monday:%a %m-%d} 09:30"]


def test_a_tick_moved_to_a_day_of_a_clock_change_follows_the_change() -> None:
    saturdays = Calendar(NEW_YORK, weekdays=frozenset({5}))
    late, lost = (CalendarTrigger(parse_cron(f"30 {hour} * * SAT", NEW_YORK), saturdays, "move") for hour in (9, 2))
    assert walls_of(late, instant_of(2024, 3, 9), 1) == ["Sun 03-10 09:30"]
    # 02:30 does not exist: the first instant after the gap.
    assert walls_of(lost, instant_of(2024, 3, 9), 1) == ["Sun 03-10 03:00"]
    twice = CalendarTrigger(parse_cron("30 1 * * SAT", NEW_YORK), saturdays, "move")
    assert fire_times(twice, instant_of(2024, 11, 2), 2) == [
        instant_of(2024, 11, 3, 5, 30),
        instant_of(2024, 11, 10, 6, 30),
    ]


def test_an_excluded_weekend_without_ticks_does_not_hide_a_later_holiday() -> None:
    """Asked on a Saturday without ticks. The Tuesday is a holiday, so its tick comes on Wednesday, not a week later."""
    holiday = date(2024, 6, 11)
    trigger = CalendarTrigger(
        parse_cron("0 9 * * TUE", NEW_YORK), Calendar(NEW_YORK, frozenset({holiday}), WEEKEND), "move"
    )
    for after in (
        instant_of(2024, 6, 8, 15),
        instant_of(2024, 6, 9, 15),
        instant_of(2024, 6, 10, 15),
        instant_of(2024, 6, 11, 15),
    ):
        assert walls_of(trigger, after, 2) == ["Wed 06-12 09:00", "Tue 06-18 09:00"]


def test_days_are_in_the_time_zone_of_the_calendar() -> None:
    """20:00 on Friday in New York is Saturday in Berlin."""
    evenings = CalendarTrigger(
        parse_cron("0 20 * * *", NEW_YORK), Calendar(ZoneInfo("Europe/Berlin"), weekdays=WEEKEND)
    )
    assert walls_of(evenings, instant_of(2024, 6, 4), 4) == [
        "Tue 06-04 20:00",
        "Wed 06-05 20:00",
        "Thu 06-06 20:00",
        "Sun 06-09 20:00",
    ]


def test_a_day_that_begins_at_one_is_excluded_from_one() -> None:
    santiago = ZoneInfo("America/Santiago")
    hourly = CalendarTrigger(
        IntervalTrigger(3600, START, WallPolicy(santiago)), Calendar(santiago, weekdays=frozenset({5}))
    )
    assert walls_of(hourly, instant_of(2024, 9, 7, 4), 2, santiago) == ["Sun 09-08 01:00", "Sun 09-08 02:00"]
    assert Calendar(santiago).start_of((date(2024, 9, 8) - date(1970, 1, 1)).days) == instant_of(2024, 9, 8, 4)


def test_a_calendar_that_excludes_nothing_changes_nothing() -> None:
    inner = parse_cron("*/7 3-5 * * *", NEW_YORK)
    assert fire_times(CalendarTrigger(inner, Calendar(NEW_YORK)), START, 100) == fire_times(inner, START, 100)
    assert fire_times(CalendarTrigger(inner, Calendar(NEW_YORK), "move"), START, 100) == fire_times(inner, START, 100)


def test_an_excluded_day_is_skipped_in_one_step() -> None:
    """A weekend of every second is 172800 fires."""
    trigger = CalendarTrigger(parse_cron("* * * * * *", NEW_YORK), Calendar(NEW_YORK, weekdays=WEEKEND))
    friday = instant_of(2024, 6, 7, 23, 59, 58, zone="America/New_York")
    monday = instant_of(2024, 6, 10, zone="America/New_York")
    assert fire_times(trigger, friday, 3) == [friday + 1, monday, monday + 1]
    assert steps_of(lambda: fire_times(trigger, friday, 3)) < 2_000


def test_ticks_moved_from_a_repeated_hour_are_in_local_order() -> None:
    """On Sunday, 01:30 came first, and 01:10 after the clock went back. On Monday it is the other way round."""
    inner = UnionTrigger((OnceTrigger(instant_of(2024, 11, 3, 5, 30)), OnceTrigger(instant_of(2024, 11, 3, 6, 10))))
    trigger = CalendarTrigger(inner, Calendar(NEW_YORK, weekdays=WEEKEND), "move")
    assert walls_of(trigger, instant_of(2024, 11, 1), 3) == ["Mon 11-04 01:10", "Mon 11-04 01:30"]


# Nothing left


@pytest.mark.parametrize("on_excluded", ["skip", "move"])
@pytest.mark.parametrize("expression", ["* * * * *", "0 9 * * *", "0 0 29 2 *", "* * * * * *"])
def test_a_calendar_that_excludes_every_day_quickly_yields_no_tick(on_excluded: OnExcluded, expression: str) -> None:
    trigger = CalendarTrigger(parse_cron(expression, NEW_YORK), Calendar(NEW_YORK, weekdays=ALL_WEEK), on_excluded)
    assert trigger.next_after(START) is None
    assert steps_of(lambda: trigger.next_after(START)) < 60_000


def test_a_calendar_that_excludes_every_tick_yields_no_tick_in_bounded_time() -> None:
    trigger = CalendarTrigger(parse_cron("0 9 * * SUN", NEW_YORK), Calendar(NEW_YORK, weekdays=WEEKEND))
    assert trigger.next_after(START) is None
    assert steps_of(lambda: trigger.next_after(START)) < 1_000_000


def test_a_schedule_whose_ticks_all_move_is_answered_quickly() -> None:
    trigger = CalendarTrigger(parse_cron("0 9 * * SUN", NEW_YORK), Calendar(NEW_YORK, weekdays=WEEKEND), "move")
    assert walls_of(trigger, START, 3) == ["Mon 01-01 09:00", "Mon 01-08 09:00", "Mon 01-15 09:00"]
    assert steps_of(lambda: fire_times(trigger, START, 20)) < 60_000


def test_a_year_of_excluded_days_is_stepped_over() -> None:
    year = frozenset(date(2024, 1, 1) + timedelta(days=n) for n in range(366))
    inner, calendar = parse_cron("0 9 1,15 * *", UTC_ZONE), Calendar(UTC_ZONE, year)
    assert fire_times(CalendarTrigger(inner, calendar), START, 2) == [
        instant_of(2025, 1, 1, 9),
        instant_of(2025, 1, 15, 9),
    ]
    inner = parse_cron("30 8 15 6 *", UTC_ZONE)
    assert fire_times(CalendarTrigger(inner, calendar, "move"), START, 2) == [
        instant_of(2025, 1, 1, 8, 30),
        instant_of(2025, 6, 15, 8, 30),
    ]


@pytest.mark.parametrize("on_excluded", ["skip", "move"])
def test_the_far_future_and_the_distant_past_do_not_crash(on_excluded: OnExcluded) -> None:
    calendar = Calendar(NEW_YORK, frozenset({CHRISTMAS, date(2199, 12, 31)}), WEEKEND)
    trigger = CalendarTrigger(parse_cron("0 9 * * *", NEW_YORK), calendar, on_excluded)
    for after in (LATEST, LATEST + 1, 10**30):
        assert trigger.next_after(after) is None
    assert trigger.next_after(-(10**30)) is not None
    assert all(instant <= LATEST for instant in fire_times(trigger, instant_of(2199, 12, 1), 50))
    assert CalendarTrigger(OnceTrigger(10**15), calendar, on_excluded).next_after(START) is None


# Against the walk over the days


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(oracle.transitions()),
    st.integers(min_value=0, max_value=2**32),
    st.sampled_from(["skip", "move"]),
    st.booleans(),
)
def test_a_calendar_agrees_with_a_walk_over_the_days(
    transition: tuple[ZoneInfo, int], number: int, on_excluded: OnExcluded, is_foreign: bool
) -> None:
    """Three weeks with a clock change in the middle. The calendar may have another zone than the trigger."""
    chance = random.Random(number)
    zone, middle = transition
    calendar_zone = chance.choice(oracle.ZONES) if is_foreign else zone
    near = datetime.fromtimestamp(middle, calendar_zone).date()
    dates = frozenset(near + timedelta(days=chance.randint(-10, 10)) for _ in range(chance.randint(0, 6)))
    weekdays = frozenset(chance.sample(range(7), k=chance.choice([0, 1, 2, 2, 3])))
    inner: Trigger
    if chance.random() < 0.3:
        inner = IntervalTrigger(
            chance.choice([5000, 7200, 40_000, DAY, 2 * DAY]),
            middle - 40 * DAY - chance.randrange(DAY),
            WallPolicy(zone),
        )
    else:
        hours = chance.choice(["*/5", "0", "1", "2", "3", "23", "0-3", "9,17", "*"])
        weekday = chance.choice(["*", "SUN", "SAT,SUN", "MON-FRI", "TUE", "5L"])
        inner = parse_cron(
            f"{chance.choice([0, 15, 30, 59])} {hours} * * {weekday}",
            zone,
            dst_fold=chance.choice(["first", "last", "both"]),
        )
    calendar = Calendar(calendar_zone, dates, weekdays)
    # Starts early enough to see ticks moved into the window, and ends when no tick could still move to an earlier time.
    all_inner, instant = [], inner.next_after(middle - 40 * DAY)
    while instant is not None and instant < middle + 12 * DAY:
        all_inner.append(instant)
        instant = inner.next_after(instant)
    start, end = middle - 11 * DAY + chance.randrange(DAY), middle + 11 * DAY
    expected = [instant for instant in judged(all_inner, calendar, on_excluded) if start < instant < end]
    trigger = CalendarTrigger(inner, calendar, on_excluded)
    found, instant = [], trigger.next_after(start)
    while instant is not None and instant < end:
        found.append(instant)
        instant = trigger.next_after(instant)
    assert found == expected
