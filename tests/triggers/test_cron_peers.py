"""Agreement with cronsim and croniter, and the known differences."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter  # type: ignore[import-untyped]
from cronsim import CronSim

from foliot.triggers.base import fire_times, to_datetime
from foliot.triggers.cron import parse_cron
from foliot.triggers.cron_fields import CronError
from tests.triggers import oracle
from tests.triggers.oracle import DAY
from tests.triggers.walking import FIRST, LAST, NEW_YORK, UTC_ZONE, walk


def test_cronsim_agrees_in_utc_on_all_crontab_expressions() -> None:
    chance = random.Random("cronsim")
    for _ in range(400):
        expression = oracle.random_crontab_expression(chance)
        start = chance.randint(FIRST, LAST)
        try:
            trigger = parse_cron(expression, UTC_ZONE)
        except CronError:
            with pytest.raises(Exception, match="Bad day-of-month"):
                CronSim(expression, to_datetime(start))
            continue
        judged = [int(moment.timestamp()) for moment in islice(CronSim(expression, to_datetime(start)), 60)]
        assert fire_times(trigger, start, 60) == judged, f"{expression} after {start}"


@pytest.mark.parametrize(
    "days",
    ["L * *", "LW * *", "L,15 2 *", "* * 5L", "* * 0L", "* * MON#2", "13 * 5#5", "* * 7#1,3L", "LW */3 1", "29 2 *"],
)
def test_cronsim_agrees_from_2024_to_2031_on_last_and_nth_days(days: str) -> None:
    judged = []
    for moment in CronSim(f"30 6 {days}", to_datetime(FIRST)):
        if moment >= to_datetime(LAST):
            break
        judged.append(int(moment.timestamp()))
    assert list(walk(parse_cron(f"30 6 {days}", UTC_ZONE), FIRST, LAST)) == judged


@pytest.mark.parametrize("name", ["America/New_York", "Europe/Berlin", "Africa/Cairo", "America/Santiago"])
def test_cronsim_agrees_on_fixed_times_in_zones_with_daylight_saving(name: str) -> None:
    """Its rule equals our defaults, `shift` and `first`, if neither minute nor hour begins with a star."""
    chance = random.Random(f"cronsim {name}")
    zone = ZoneInfo(name)
    for _, instant in (pair for pair in oracle.transitions() if pair[0] is zone):
        for _ in range(2):
            minutes = ",".join(str(chance.randrange(60)) for _ in range(chance.randint(1, 4)))
            hours = chance.choice(["0", "1", "2", "3", "23", "0-3", "1,2", "0-23", "2-23/3", "23,0"])
            start = instant - 2 * DAY
            judged = [
                int(moment.timestamp())
                for moment in islice(CronSim(f"{minutes} {hours} * * *", datetime.fromtimestamp(start, zone)), 150)
            ]
            assert fire_times(parse_cron(f"{minutes} {hours} * * *", zone), start, 150) == judged, (
                f"{minutes} {hours} after {start}"
            )


def test_croniter_agrees_in_utc_on_crontab_expressions() -> None:
    chance = random.Random("croniter")
    compared = 0
    while compared < 200:
        expression = oracle.random_crontab_expression(chance)
        day, weekday = expression.split()[2::2]
        start = to_datetime(chance.randint(FIRST, LAST))
        # A known difference, see below: `*/2` in one day field does not make a day fit both.
        if day != "*" and weekday != "*" and "*" in (day[0], weekday[0]):
            continue
        if not any(oracle.days_named(expression)):
            continue
        steps = croniter(expression, start)
        judged = [int(steps.get_next(datetime).timestamp()) for _ in range(30)]
        assert fire_times(parse_cron(expression, UTC_ZONE), int(start.timestamp()), 30) == judged, (
            f"{expression} after {start}"
        )
        compared += 1


def by_cronsim(expression: str, after: datetime, count: int) -> list[str]:
    return [f"{moment:%m-%d %H:%M}" for moment in islice(CronSim(expression, after), count)]


def by_croniter(expression: str, after: datetime, count: int) -> list[str]:
    steps = croniter(expression, after)
    return [f"{steps.get_next(datetime):%m-%d %H:%M}" for _ in range(count)]


def by_us(expression: str, after: datetime, count: int) -> list[str]:
    zone = after.tzinfo
    trigger = parse_cron(expression, zone if isinstance(zone, ZoneInfo) else UTC_ZONE)
    return [
        f"{datetime.fromtimestamp(instant, zone):%m-%d %H:%M}"
        for instant in fire_times(trigger, int(after.timestamp()), count)
    ]


def test_known_difference_croniter_reads_a_step_of_days_with_a_weekday_as_either() -> None:
    """By Debian's crontab(5), a field that begins with a star makes a day fit both. 2024-01-01 was a Monday."""
    after = datetime(2023, 12, 31, tzinfo=UTC)
    assert (
        by_us("0 0 */10 * MON", after, 3)
        == by_cronsim("0 0 */10 * MON", after, 3)
        == ["01-01 00:00", "03-11 00:00", "04-01 00:00"]
    )
    assert by_croniter("0 0 */10 * MON", after, 3) == ["01-01 00:00", "01-08 00:00", "01-11 00:00"]


def test_known_difference_croniter_reads_a_range_of_one_number_as_all() -> None:
    after = datetime(2024, 1, 1, tzinfo=UTC)
    assert by_us("0 5-5 * * *", after, 2) == by_cronsim("0 5-5 * * *", after, 2) == ["01-01 05:00", "01-02 05:00"]
    assert by_croniter("0 5-5 * * *", after, 2) == ["01-01 01:00", "01-01 02:00"]


def test_known_difference_croniter_repeats_fixed_times_in_a_fold() -> None:
    """In a crontab, a job at a fixed time runs once in the night with the repeated hour."""
    after = datetime(2024, 11, 3, tzinfo=NEW_YORK)
    assert by_us("30 1 * * *", after, 2) == by_cronsim("30 1 * * *", after, 2) == ["11-03 01:30", "11-04 01:30"]
    assert by_croniter("30 1 * * *", after, 2) == ["11-03 01:30", "11-03 01:30"]


def test_known_difference_cronsim_steps_through_the_week_up_to_a_second_sunday() -> None:
    """7 is another name of the first day of the week, not an eighth day: `2/5` is Tuesday. crontab(5) has no such
    steps."""
    after = datetime(2023, 12, 31, tzinfo=UTC)
    assert by_us("0 0 * * 2/5", after, 2) == ["01-02 00:00", "01-09 00:00"]
    assert by_cronsim("0 0 * * 2/5", after, 2) == ["01-02 00:00", "01-07 00:00"]


@pytest.mark.parametrize("name", ["America/New_York", "Europe/Berlin", "Africa/Cairo", "America/Santiago"])
def test_cronsim_agrees_on_stars_in_the_minute_or_the_hour_in_zones_with_daylight_saving(name: str) -> None:
    """Both follow Debian's rule."""
    chance = random.Random(f"stars {name}")
    zone = ZoneInfo(name)
    for _, instant in (pair for pair in oracle.transitions() if pair[0] is zone):
        for expression in (
            "* 0-3 * * *",
            "*/20 1,2 * * *",
            "*/30 23,0 * * *",
            "17 */2 * * *",
            "40 * * * *",
            f"*/10 {chance.randrange(24)} * * *",
        ):
            start = instant - 2 * DAY
            judged = [
                int(moment.timestamp())
                for moment in islice(CronSim(expression, datetime.fromtimestamp(start, zone)), 150)
            ]
            assert fire_times(parse_cron(expression, zone), start, 150) == judged, f"{expression} after {start}"
