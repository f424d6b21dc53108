"""Cron compared with a walk over every minute, and with examples worked out by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foliot.triggers.base import LATEST, fire_times, to_datetime
from foliot.triggers.cron import parse_cron
from foliot.triggers.cron_fields import CronError
from foliot.triggers.dst import DstFold, DstGap
from tests.triggers import oracle
from tests.triggers.oracle import DAY, instant_of
from tests.triggers.walking import FIRST, FOLDS, GAPS, LAST, NEW_YORK, UTC_ZONE, walk

randoms = st.integers(min_value=0, max_value=2**32).map(random.Random)
zones = st.sampled_from(oracle.ZONES)
gaps = st.sampled_from(GAPS)
folds = st.sampled_from(FOLDS)
instants = st.integers(min_value=FIRST, max_value=LAST)
expressions = st.builds(oracle.random_expression, randoms)


def examples(count: int) -> settings:
    return settings(max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow])


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
    """Random expressions, without the few that can never fire."""
    while count:
        expression = oracle.random_expression(chance)
        if any(oracle.days_named(expression)):
            yield expression
            count -= 1


# Against the walk of every minute


def test_the_oracle_knows_the_transitions_under_test() -> None:
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
def test_around_every_transition_ticks_equal_a_walk_over_every_minute(zone: ZoneInfo) -> None:
    chance = random.Random(f"transitions {zone.key}")
    for _, instant in (pair for pair in oracle.transitions() if pair[0] is zone):
        seen = oracle.window(zone, instant - 27 * 3600, instant + 27 * 3600)
        for _ in range(3):
            assert_same_as_oracle(oracle.random_night_expression(chance), seen)


@pytest.mark.parametrize("zone", oracle.ZONES, ids=str)
def test_in_other_windows_ticks_equal_a_walk_over_every_minute(zone: ZoneInfo) -> None:
    chance = random.Random(f"windows {zone.key}")
    for _ in range(4):
        start = chance.randrange(FIRST, LAST, 60)
        seen = oracle.window(zone, start, start + 2 * DAY)
        for expression in possible_expressions(chance, 4):
            assert_same_as_oracle(expression, seen)


@examples(60)
@given(st.sampled_from(oracle.transitions()), st.integers(min_value=-1000, max_value=1000), randoms, st.booleans())
def test_near_random_transitions_ticks_equal_the_walk(
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
def test_with_seconds_ticks_equal_a_walk_over_every_second(zone: ZoneInfo, instant: int) -> None:
    chance = random.Random(instant)
    seen = oracle.window(zone, instant - 2700, instant + 2700, step=1, margin=4000)
    for _ in range(3):
        second = oracle.random_field(chance, 0, 59, 0.05)
        hour = chance.choice(["*", "*/2", "0-5", "22-23,0-3", "*,1"])
        assert_same_as_oracle(f"{second} {oracle.random_field(chance, 0, 59, 0.2)} {hour} * * *", seen)


def test_over_eight_years_days_equal_a_walk_over_every_day() -> None:
    chance = random.Random("days")
    for _ in range(40):
        days = (
            f"{oracle.random_date_field(chance)} {oracle.random_month_field(chance)} "
            f"{oracle.random_weekday_field(chance)}"
        )
        judged = list(oracle.days_named(f"0 0 {days}"))
        if judged:
            found = [to_datetime(instant).date() for instant in walk(parse_cron(f"0 0 {days}", UTC_ZONE), FIRST, LAST)]
            assert found == judged, days


# The meaning of the grammar


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
        # A Saturday 1st must not move into the previous month, nor a Sunday 31st into the next.
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
        # L-28 is February 1 in leap years, and does not exist in other years. A Sunday 1st moves to Monday the 2nd.
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
def test_days_follow_the_grammar(expression: str, dates: list[str]) -> None:
    assert dates_of(expression, len(dates)) == dates


def test_six_fields_begin_with_seconds() -> None:
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
def test_an_alias_fires_like_its_expression(alias: str, same: str) -> None:
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
def test_an_expression_that_never_fires_is_refused_at_its_day(expression: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_cron(expression, UTC_ZONE)
    assert caught.value.field == "day-of-month"
    assert expression[caught.value.start : caught.value.end] == expression.split()[-3]
    assert "never fires" in caught.value.detail


@pytest.mark.parametrize(
    "expression", ["0 0 29 2 *", "0 0 30 2 MON", "0 0 * 2 MON#5", "0 0 L-28 2 *", "0 0 31 2,3 *", "0 0 */28 2 SUN"]
)
def test_an_expression_that_rarely_fires_is_accepted(expression: str) -> None:
    assert parse_cron(expression, UTC_ZONE).next_after(FIRST) is not None


# Properties


@examples(200)
@given(randoms, zones, gaps, folds, instants)
def test_the_next_tick_is_later_and_none_is_in_between(
    chance: random.Random, zone: ZoneInfo, dst_gap: DstGap, dst_fold: DstFold, instant: int
) -> None:
    expression = next(possible_expressions(chance, 1))
    found = parse_cron(expression, zone, dst_gap=dst_gap, dst_fold=dst_fold).next_after(instant)
    assert found is not None
    assert found > instant
    # Whole minutes after the instant, for as long as the walk is fast.
    start = (instant // 60 + 1) * 60
    end = min(found, start + DAY) + 60
    assert oracle.fires(expression, oracle.window(zone, start, end), dst_gap, dst_fold) == (
        [found] if found < end else []
    )


@examples(150)
@given(randoms, zones, gaps, folds, st.lists(instants, min_size=2, max_size=20))
def test_a_later_start_never_gives_an_earlier_tick(
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
def test_next_after_is_deterministic(
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
def test_ticks_end_in_the_far_future(expression: str, zone: ZoneInfo, instant: int) -> None:
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
def test_the_last_tick_does_not_depend_on_the_start(zone: ZoneInfo) -> None:
    trigger = parse_cron("0 * * * *", zone)
    daily = parse_cron("0 0 * * *", zone)
    assert list(walk(trigger, LATEST - DAY, LATEST + DAY))[-1] > LATEST - 3600
    ends = {fire_times(daily, LATEST - n * DAY - 7, 20)[-1] for n in range(2, 10)}
    assert len(ends) == 1
    assert LATEST - DAY < ends.pop() <= LATEST


@pytest.mark.parametrize("instant", [LATEST, LATEST + 1, instant_of(9999, 12, 31), 10**12, 10**30])
def test_there_is_no_tick_after_the_last_instant(instant: int) -> None:
    for zone in oracle.ZONES:
        assert parse_cron("* * * * *", zone).next_after(instant) is None


@pytest.mark.parametrize("instant", [0, -1, -DAY, instant_of(1950), -62_135_596_800, -(10**30)])
def test_the_first_tick_is_found_from_the_distant_past(instant: int) -> None:
    for zone in oracle.ZONES:
        found = parse_cron("0 0 1 * *", zone).next_after(instant)
        assert found is not None
        assert found > instant


def test_a_day_that_comes_once_in_forty_years_is_found_across_2100() -> None:
    for zone in (UTC_ZONE, NEW_YORK):
        trigger = parse_cron("0 0 * 2 MON#5", zone)
        found = [datetime.fromtimestamp(instant, zone).year for instant in fire_times(trigger, FIRST, 10)]
        assert found == [2044, 2072, 2112, 2140, 2168, 2196]


def test_a_time_that_is_skipped_every_year_never_fires() -> None:
    trigger = parse_cron("30 2 * 3 SUN#2", NEW_YORK, dst_gap="skip")
    assert trigger.next_after(FIRST) is None
