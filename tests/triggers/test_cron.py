"""Cron: our stepping against a walk of every minute, against two other engines, and against examples worked out by
hand."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter  # type: ignore[import-untyped]
from cronsim import CronSim
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foliot.triggers.base import LATEST, fire_times, to_datetime
from foliot.triggers.cron import CronTrigger, parse_cron
from foliot.triggers.cron_fields import CronError
from foliot.triggers.dst import DstFold, DstGap
from tests.triggers import oracle
from tests.triggers.oracle import DAY, instant_of

UTC_ZONE = ZoneInfo("UTC")
NEW_YORK = ZoneInfo("America/New_York")
GAPS: tuple[DstGap, ...] = ("shift", "skip")
FOLDS: tuple[DstFold, ...] = ("first", "last", "both")
FIRST, LAST = instant_of(2024), instant_of(2032)

randoms = st.integers(min_value=0, max_value=2**32).map(random.Random)
zones = st.sampled_from(oracle.ZONES)
gaps = st.sampled_from(GAPS)
folds = st.sampled_from(FOLDS)
instants = st.integers(min_value=FIRST, max_value=LAST)
expressions = st.builds(oracle.random_expression, randoms)


def examples(count: int) -> settings:
    return settings(max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def walk(trigger: CronTrigger, start: int, end: int) -> Iterator[int]:
    """The instants of [start, end)."""
    found = trigger.next_after(start - 1)
    while found is not None and found < end:
        yield found
        found = trigger.next_after(found)


def times_of(
    expression: str, zone: str, day: date, *, days: int = 1, dst_gap: DstGap = "shift", dst_fold: DstFold = "first"
) -> list[str]:
    """The wall times, with their offsets, at which an expression fires on a day."""
    local = ZoneInfo(zone)
    start = oracle.instant_at(datetime.combine(day, time()), local)
    end = oracle.instant_at(datetime.combine(day + timedelta(days=days), time()), local)
    trigger = parse_cron(expression, local, dst_gap=dst_gap, dst_fold=dst_fold)
    return [datetime.fromtimestamp(instant, local).strftime("%H:%M%z") for instant in walk(trigger, start, end)]


def dates_of(expression: str, count: int, *, after: date = date(2023, 12, 31)) -> list[str]:
    trigger = parse_cron(f"0 0 {expression}", UTC_ZONE)
    return [
        f"{to_datetime(instant):%Y-%m-%d}"
        for instant in fire_times(trigger, instant_of(after.year, after.month, after.day), count)
    ]


def assert_same_as_oracle(expression: str, seen: oracle.Window) -> None:
    judged = oracle.fires_by_policy(expression, seen)
    for gap in GAPS:
        for fold in FOLDS:
            trigger = parse_cron(expression, seen.zone, dst_gap=gap, dst_fold=fold)
            assert list(walk(trigger, seen.start, seen.end)) == judged[gap, fold], f"{expression} {seen} {gap} {fold}"


def possible_expressions(chance: random.Random, count: int) -> Iterator[str]:
    """Random ones, without the few that can never fire."""
    while count:
        expression = oracle.random_expression(chance)
        if any(oracle.days_named(expression)):
            yield expression
            count -= 1


# Against the walk of every minute


def test_the_oracle_knows_the_transitions_it_is_meant_to_judge() -> None:
    found = {name: sum(zone.key == name for zone, _ in oracle.transitions()) for name in oracle.ZONE_NAMES}
    assert (
        found["America/New_York"]
        == found["Europe/Berlin"]
        == found["Europe/London"]
        == found["Australia/Lord_Howe"]
        == 16
    )
    assert found["UTC"] == found["Asia/Kathmandu"] == 0
    assert min(found["America/Santiago"], found["Africa/Cairo"], found["Africa/Casablanca"]) >= 16


@pytest.mark.parametrize(
    "zone", [zone for zone in oracle.ZONES if any(zone is other for other, _ in oracle.transitions())], ids=str
)
def test_around_every_transition_we_fire_when_a_walk_of_every_minute_does(zone: ZoneInfo) -> None:
    chance = random.Random(f"transitions {zone.key}")
    for _, instant in (pair for pair in oracle.transitions() if pair[0] is zone):
        seen = oracle.window(zone, instant - 27 * 3600, instant + 27 * 3600)
        for _ in range(3):
            assert_same_as_oracle(oracle.random_night_expression(chance), seen)


@pytest.mark.parametrize("zone", oracle.ZONES, ids=str)
def test_in_any_other_window_we_fire_when_a_walk_of_every_minute_does(zone: ZoneInfo) -> None:
    chance = random.Random(f"windows {zone.key}")
    for _ in range(4):
        start = chance.randrange(FIRST, LAST, 60)
        seen = oracle.window(zone, start, start + 2 * DAY)
        for expression in possible_expressions(chance, 4):
            assert_same_as_oracle(expression, seen)


@examples(60)
@given(st.sampled_from(oracle.transitions()), st.integers(min_value=-1000, max_value=1000), randoms, st.booleans())
def test_hypothesis_finds_no_minute_near_a_transition_on_which_we_and_the_walk_differ(
    transition: tuple[ZoneInfo, int], minutes: int, chance: random.Random, is_night: bool
) -> None:
    zone, instant = transition
    seen = oracle.window(zone, instant + minutes * 60 - DAY // 2, instant + minutes * 60 + DAY // 2)
    assert_same_as_oracle(
        oracle.random_night_expression(chance) if is_night else next(possible_expressions(chance, 1)), seen
    )


@pytest.mark.parametrize(
    ("zone", "instant"), oracle.transitions()[::13], ids=lambda value: getattr(value, "key", value)
)
def test_with_seconds_we_fire_when_a_walk_of_every_second_does(zone: ZoneInfo, instant: int) -> None:
    chance = random.Random(instant)
    seen = oracle.window(zone, instant - 2700, instant + 2700, step=1, margin=4000)
    for _ in range(3):
        second = oracle.random_field(chance, 0, 59, 0.05)
        hour = chance.choice(["*", "*/2", "0-5", "22-23,0-3", "*,1"])
        assert_same_as_oracle(f"{second} {oracle.random_field(chance, 0, 59, 0.2)} {hour} * * *", seen)


def test_over_eight_years_we_name_the_days_that_a_walk_of_every_day_names() -> None:
    chance = random.Random("days")
    for _ in range(40):
        days = f"{oracle.random_date_field(chance)} {oracle.random_month_field(chance)} {oracle.random_weekday_field(chance)}"
        judged = list(oracle.days_named(f"0 0 {days}"))
        if judged:
            found = [to_datetime(instant).date() for instant in walk(parse_cron(f"0 0 {days}", UTC_ZONE), FIRST, LAST)]
            assert found == judged, days


# Against other engines, where they are right


def test_cronsim_agrees_in_utc_on_all_that_a_crontab_can_say() -> None:
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
    """Its rule is ours by default, `shift` and `first`, when neither minute nor hour begins with a star."""
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


def test_croniter_agrees_in_utc_on_what_a_crontab_can_say() -> None:
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
    """crontab(5) of Debian: a field that begins with a star makes a day fit both. 2024-01-01 was a Monday."""
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
    """7 is another name of the day with which the week begins, not an eighth day: `2/5` is Tuesday. crontab(5) knows no
    such steps."""
    after = datetime(2023, 12, 31, tzinfo=UTC)
    assert by_us("0 0 * * 2/5", after, 2) == ["01-02 00:00", "01-09 00:00"]
    assert by_cronsim("0 0 * * 2/5", after, 2) == ["01-02 00:00", "01-07 00:00"]


@pytest.mark.parametrize("name", ["America/New_York", "Europe/Berlin", "Africa/Cairo", "America/Santiago"])
def test_cronsim_agrees_on_stars_in_the_minute_or_the_hour_in_zones_with_daylight_saving(name: str) -> None:
    """Both go by Debian's rule."""
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


# The odd nights, by hand


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
def test_new_york_in_the_night_that_has_no_two_o_clock(expression: str, dst_gap: DstGap, times: list[str]) -> None:
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
def test_new_york_in_the_night_that_has_one_o_clock_twice(expression: str, dst_fold: DstFold, times: list[str]) -> None:
    assert times_of(expression, "America/New_York", AUTUMN, dst_fold=dst_fold) == times


@pytest.mark.parametrize("hour", ["*", "?", "*/1"])
@pytest.mark.parametrize("dst_fold", FOLDS)
def test_every_hour_is_every_hour_whatever_the_clock_does(hour: str, dst_fold: DstFold) -> None:
    for day, hours in ((SPRING, 23), (AUTUMN, 25)):
        trigger = parse_cron(f"0 {hour} * * *", NEW_YORK, dst_fold=dst_fold)
        start = instant_of(day.year, day.month, day.day, zone="America/New_York")
        assert fire_times(trigger, start - 1, hours + 1) == [start + n * 3600 for n in range(hours + 1)]


def test_a_list_that_begins_with_a_star_follows_real_time_and_one_that_ends_with_it_does_not() -> None:
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
def test_where_midnight_does_not_exist_a_midnight_job_fires_at_one_or_not_at_all(
    name: str, day: date, offset: str
) -> None:
    assert times_of("0 0 * * *", name, day) == [f"01:00{offset}"]
    assert times_of("0 0 * * *", name, day, dst_gap="skip") == []
    assert times_of("30 0 * * *", name, day) == [f"01:00{offset}"]
    assert times_of("0 0 * * *", name, day, days=2) == [f"01:00{offset}", f"00:00{offset}"]


def test_where_the_last_hour_of_a_day_comes_twice_the_next_day_still_begins_once() -> None:
    assert times_of("30 23 * * *", "America/Santiago", date(2024, 4, 6)) == ["23:30-0300"]
    assert times_of("30 23 * * *", "America/Santiago", date(2024, 4, 6), dst_fold="last") == ["23:30-0400"]
    assert times_of("30 23 * * *", "America/Santiago", date(2024, 4, 6), dst_fold="both") == [
        "23:30-0300",
        "23:30-0400",
    ]
    assert times_of("0 0 * * *", "America/Santiago", date(2024, 4, 7), dst_fold="both") == ["00:00-0400"]


def test_the_day_that_apia_skipped_is_shifted_as_one_or_skipped() -> None:
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


# What the grammar means


@pytest.mark.parametrize(
    ("expression", "dates"),
    [
        ("L * *", ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"]),
        ("L-3 * *", ["2024-01-28", "2024-02-26", "2024-03-28", "2024-04-27"]),
        ("L-30 * *", ["2024-01-01", "2024-03-01", "2024-05-01"]),
        ("L-28 2 *", ["2024-02-01", "2028-02-01"]),
        ("L,1 * *", ["2024-01-01", "2024-01-31", "2024-02-01", "2024-02-29"]),
        ("LW * *", ["2024-01-31", "2024-02-29", "2024-03-29", "2024-04-30", "2024-05-31", "2024-06-28"]),
        (
            "15W * *",
            [
                "2024-01-15",
                "2024-02-15",
                "2024-03-15",
                "2024-04-15",
                "2024-05-15",
                "2024-06-14",
                "2024-07-15",
                "2024-08-15",
                "2024-09-16",
            ],
        ),
        # A Saturday 1st must not go back into the month before, a Sunday 31st not on into the next.
        ("1W 6,9 *", ["2024-06-03", "2024-09-02"]),
        ("31W * *", ["2024-01-31", "2024-03-29", "2024-05-31", "2024-07-31", "2024-08-30", "2024-10-31", "2024-12-31"]),
        ("30W 6 *", ["2024-06-28"]),
        ("29W 2 *", ["2024-02-29", "2028-02-29", "2032-02-27"]),
        ("* * 5L", ["2024-01-26", "2024-02-23", "2024-03-29"]),
        ("* * FRIL", ["2024-01-26", "2024-02-23", "2024-03-29"]),
        ("* * 7L", ["2024-01-28", "2024-02-25", "2024-03-31"]),
        ("* * L", ["2024-01-06", "2024-01-13"]),
        ("* * MON#2", ["2024-01-08", "2024-02-12"]),
        ("* * 1#5", ["2024-01-29", "2024-04-29", "2024-07-29"]),
        ("* 2 MON#5", ["2044-02-29", "2072-02-29", "2112-02-29"]),
        ("* * 7", ["2024-01-07", "2024-01-14"]),
        ("* * 0", ["2024-01-07", "2024-01-14"]),
        ("* * SUN", ["2024-01-07", "2024-01-14"]),
        ("* * FRI-SUN", ["2024-01-05", "2024-01-06", "2024-01-07", "2024-01-12"]),
        ("* * 5-7", ["2024-01-05", "2024-01-06", "2024-01-07", "2024-01-12"]),
        ("* * 5-0", ["2024-01-05", "2024-01-06", "2024-01-07", "2024-01-12"]),
        ("* * FRI-MON", ["2024-01-01", "2024-01-05", "2024-01-06", "2024-01-07", "2024-01-08"]),
        ("* * SAT-TUE/2", ["2024-01-01", "2024-01-06", "2024-01-08"]),
        ("* * 7-1", ["2024-01-01", "2024-01-07", "2024-01-08"]),
        ("* * 6-0", ["2024-01-06", "2024-01-07", "2024-01-13"]),
        ("* * FRI#L", ["2024-01-26", "2024-02-23", "2024-03-29"]),
        ("* * SAT-SUN#L", ["2024-01-27", "2024-01-28", "2024-02-24", "2024-02-25"]),
        (
            "* * MON-FRI#1",
            [
                "2024-01-01",
                "2024-01-02",
                "2024-01-03",
                "2024-01-04",
                "2024-01-05",
                "2024-02-01",
                "2024-02-02",
                "2024-02-05",
            ],
        ),
        ("* * MON#1,MON#3", ["2024-01-01", "2024-01-15", "2024-02-05", "2024-02-19"]),
        ("* * Monday,thurs", ["2024-01-01", "2024-01-04", "2024-01-08"]),
        (
            "28-2 * *",
            ["2024-01-01", "2024-01-02", "2024-01-28", "2024-01-29", "2024-01-30", "2024-01-31", "2024-02-01"],
        ),
        ("1 NOV-FEB *", ["2024-01-01", "2024-02-01", "2024-11-01", "2024-12-01", "2025-01-01"]),
        ("1 NOV-MAR/2 *", ["2024-01-01", "2024-03-01", "2024-11-01", "2025-01-01"]),
        ("1 january,December *", ["2024-01-01", "2024-12-01", "2025-01-01"]),
        ("L-1W * *", ["2024-01-30", "2024-02-28", "2024-03-29", "2024-04-29", "2024-05-30", "2024-06-28"]),
        # The first Sunday of a February of 29 days: there is no day 29 before its last, and on a Saturday 1st the
        # workday is the 3rd.
        ("L-28W 2 *", ["2024-02-01", "2028-02-01", "2032-02-02"]),
        # Friday the 13th.
        ("13 * +FRI", ["2024-09-13", "2024-12-13", "2025-06-13"]),
        ("1-7 * +MON,WED", ["2024-01-01", "2024-01-03", "2024-02-05", "2024-02-07"]),
        ("L * +FRI#L", ["2024-05-31", "2025-01-31", "2025-02-28"]),
        ("* * sun-mon", ["2024-01-01", "2024-01-07", "2024-01-08"]),
        ("? * MON", ["2024-01-01", "2024-01-08"]),
        ("1 * ?", ["2024-01-01", "2024-02-01"]),
        ("29 2 *", ["2024-02-29", "2028-02-29"]),
        ("31 * *", ["2024-01-31", "2024-03-31", "2024-05-31"]),
        ("1 JAN,jul *", ["2024-01-01", "2024-07-01", "2025-01-01"]),
        ("1 oct-dec *", ["2024-10-01", "2024-11-01", "2024-12-01", "2025-10-01"]),
        ("10-20/5 1 *", ["2024-01-10", "2024-01-15", "2024-01-20", "2025-01-10"]),
        ("25/3 1 *", ["2024-01-25", "2024-01-28", "2024-01-31", "2025-01-25"]),
        # One field set: that one. Both: either. One with a star: both.
        ("13 * FRI", ["2024-01-05", "2024-01-12", "2024-01-13", "2024-01-19"]),
        ("*/2 * FRI", ["2024-01-05", "2024-01-19", "2024-02-09", "2024-02-23"]),
        ("13 * */2", ["2024-01-13", "2024-02-13", "2024-04-13"]),
        ("L * FRI", ["2024-01-05", "2024-01-12", "2024-01-19", "2024-01-26", "2024-01-31"]),
    ],
)
def test_days_fall_where_the_grammar_says(expression: str, dates: list[str]) -> None:
    assert dates_of(expression, len(dates)) == dates


def test_seconds_lead_when_there_are_six_fields() -> None:
    trigger = parse_cron("5,35 59 23 31 12 *", UTC_ZONE)
    assert [f"{to_datetime(instant)}" for instant in fire_times(trigger, FIRST, 3)] == [
        "2024-12-31 23:59:05+00:00",
        "2024-12-31 23:59:35+00:00",
        "2025-12-31 23:59:05+00:00",
    ]
    every = parse_cron("* * * * * *", NEW_YORK)
    autumn = instant_of(2024, 11, 3, 5, 59, 30)
    assert fire_times(every, autumn, 7200) == list(range(autumn + 1, autumn + 7201))


@pytest.mark.parametrize(
    ("alias", "same"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        (" @HOURLY ", "0 * * * *"),
    ],
)
def test_an_alias_fires_as_what_it_stands_for(alias: str, same: str) -> None:
    assert fire_times(parse_cron(alias, NEW_YORK), FIRST, 100) == fire_times(parse_cron(same, NEW_YORK), FIRST, 100)


@pytest.mark.parametrize(
    "expression",
    [
        *[
            "0 0 30 2 *",
            "0 0 31 2,4,6,9,11 *",
            "0 0 L-29 2 *",
            "0 0 30W 2 *",
            "0 0 */30 * MON#2",
            "0 0 30 2 */1",
            "7 0 0 31 apr ?",
        ],
        *["0 0 L-29W 2 *", "0 0 8-14 * +MON#1", "0 0 30 2 +MON"],
    ],
)
def test_what_can_never_fire_is_refused_with_the_day_as_the_place(expression: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_cron(expression, UTC_ZONE)
    assert caught.value.field == "day-of-month"
    assert expression[caught.value.start : caught.value.end] == expression.split()[-3]
    assert "never fires" in caught.value.detail


@pytest.mark.parametrize(
    "expression", ["0 0 29 2 *", "0 0 30 2 MON", "0 0 * 2 MON#5", "0 0 L-28 2 *", "0 0 31 2,3 *", "0 0 */28 2 SUN"]
)
def test_what_fires_seldom_is_not_refused(expression: str) -> None:
    assert parse_cron(expression, UTC_ZONE).next_after(FIRST) is not None


# Properties


@examples(200)
@given(randoms, zones, gaps, folds, instants)
def test_the_next_instant_is_later_and_nothing_in_between_fires(
    chance: random.Random, zone: ZoneInfo, dst_gap: DstGap, dst_fold: DstFold, instant: int
) -> None:
    expression = next(possible_expressions(chance, 1))
    found = parse_cron(expression, zone, dst_gap=dst_gap, dst_fold=dst_fold).next_after(instant)
    assert found is not None
    assert found > instant
    # Whole minutes from the one after the instant, and no further than the walk is quick.
    start = (instant // 60 + 1) * 60
    end = min(found, start + DAY) + 60
    assert oracle.fires(expression, oracle.window(zone, start, end), dst_gap, dst_fold) == (
        [found] if found < end else []
    )


@examples(150)
@given(randoms, zones, gaps, folds, st.lists(instants, min_size=2, max_size=20))
def test_a_later_start_never_gives_an_earlier_instant(
    chance: random.Random, zone: ZoneInfo, dst_gap: DstGap, dst_fold: DstFold, starts: list[int]
) -> None:
    trigger = parse_cron(next(possible_expressions(chance, 1)), zone, dst_gap=dst_gap, dst_fold=dst_fold)
    for early, late in pairwise(sorted(starts)):
        first, second = trigger.next_after(early), trigger.next_after(late)
        assert first is not None
        assert second is not None
        assert first <= second
        assert first == second or first <= late


@examples(100)
@given(randoms, zones, gaps, folds, instants)
def test_the_same_question_has_the_same_answer(
    chance: random.Random, zone: ZoneInfo, dst_gap: DstGap, dst_fold: DstFold, instant: int
) -> None:
    expression = next(possible_expressions(chance, 1))
    answers = {
        tuple(fire_times(parse_cron(expression, zone, dst_gap=dst_gap, dst_fold=dst_fold), instant, 5))
        for _ in range(2)
    }
    answers.add(
        tuple(
            fire_times(
                parse_cron(f"  {expression.lower()} ", ZoneInfo.no_cache(zone.key), dst_gap=dst_gap, dst_fold=dst_fold),
                instant,
                5,
            )
        )
    )
    assert len(answers) == 1


@examples(100)
@given(expressions, zones, st.integers(min_value=instant_of(2198), max_value=LATEST + 400 * DAY))
def test_from_the_far_future_there_are_few_instants_more_and_then_none(
    expression: str, zone: ZoneInfo, instant: int
) -> None:
    try:
        trigger = parse_cron(expression, zone)
    except CronError:
        return
    found = fire_times(trigger, instant, 50)
    assert found == sorted(set(found))
    assert all(instant < other <= LATEST for other in found)
    last = trigger.next_after(LATEST - 8 * DAY)
    assert last is None or LATEST - 8 * DAY < last <= LATEST
    assert trigger.next_after(LATEST) is None


@pytest.mark.parametrize("zone", oracle.ZONES, ids=str)
def test_the_end_of_time_is_the_same_from_however_far_it_is_seen(zone: ZoneInfo) -> None:
    trigger = parse_cron("0 * * * *", zone)
    daily = parse_cron("0 0 * * *", zone)
    assert list(walk(trigger, LATEST - DAY, LATEST + DAY))[-1] > LATEST - 3600
    ends = {fire_times(daily, LATEST - n * DAY - 7, 20)[-1] for n in range(2, 10)}
    assert len(ends) == 1
    assert LATEST - DAY < ends.pop() <= LATEST


@pytest.mark.parametrize("instant", [LATEST, LATEST + 1, instant_of(9999, 12, 31), 10**12, 10**30])
def test_after_the_end_of_time_there_is_nothing(instant: int) -> None:
    for zone in oracle.ZONES:
        assert parse_cron("* * * * *", zone).next_after(instant) is None


@pytest.mark.parametrize("instant", [0, -1, -DAY, instant_of(1950), -62_135_596_800, -(10**30)])
def test_from_the_distant_past_the_first_instant_is_found(instant: int) -> None:
    for zone in oracle.ZONES:
        found = parse_cron("0 0 1 * *", zone).next_after(instant)
        assert found is not None
        assert found > instant


def test_a_day_that_comes_once_in_forty_years_is_found_across_2100() -> None:
    for zone in (UTC_ZONE, NEW_YORK):
        trigger = parse_cron("0 0 * 2 MON#5", zone)
        found = [datetime.fromtimestamp(instant, zone).year for instant in fire_times(trigger, FIRST, 10)]
        assert found == [2044, 2072, 2112, 2140, 2168, 2196]


def test_a_time_that_the_clock_skips_every_year_ends_with_none() -> None:
    trigger = parse_cron("30 2 * 3 SUN#2", NEW_YORK, dst_gap="skip")
    assert trigger.next_after(FIRST) is None
