"""The grammar of cron: what each field accepts, the value of H, and the places of errors."""

from __future__ import annotations

import random
from collections import Counter
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.errors import Invalid
from foliot.triggers.cron import parse_cron
from foliot.triggers.cron_fields import ALIASES, MAX_LENGTH, CronError, parse_fields
from tests.triggers import oracle

SEEDS = [f"job-{n}" for n in range(3000)]


def minutes_of(field: str, seed: str = "") -> tuple[int, ...]:
    return parse_fields(f"{field} * * * *", seed=seed).minutes


# Numbers, names, ranges, steps, lists


@pytest.mark.parametrize(
    ("field", "minutes"),
    [
        ("0", (0,)),
        ("59", (59,)),
        ("05", (5,)),
        ("1,2,2,1", (1, 2)),
        ("10-13", (10, 11, 12, 13)),
        ("7-7", (7,)),
        ("*/20", (0, 20, 40)),
        ("?/20", (0, 20, 40)),
        ("*/59", (0, 59)),
        ("*/60", (0,)),
        ("5/20", (5, 25, 45)),
        ("59/1", (59,)),
        ("50/10", (50,)),
        ("10-30/10", (10, 20, 30)),
        ("10-29/10", (10, 20)),
        ("9-9/1", (9,)),
        ("5-10/6", (5,)),
        ("58,*/30,1-2", (0, 1, 2, 30, 58)),
    ],
)
def test_a_field_of_numbers_contains_them(field: str, minutes: tuple[int, ...]) -> None:
    assert minutes_of(field) == minutes


@pytest.mark.parametrize(
    ("field", "hours"),
    [
        ("22-2", (0, 1, 2, 22, 23)),
        ("22-4/2", (0, 2, 4, 22)),
        ("20-6/3", (2, 5, 20, 23)),
        ("23-0", (0, 23)),
        ("1-0", tuple(range(24))),
        ("22-2,12", (0, 1, 2, 12, 22, 23)),
    ],
)
def test_a_range_of_hours_may_run_past_midnight(field: str, hours: tuple[int, ...]) -> None:
    assert parse_fields(f"0 {field} * * *").hours == hours


@pytest.mark.parametrize(
    ("field", "days"), [("28-3", {28, 29, 30, 31, 1, 2, 3}), ("28-3/2", {28, 30, 1, 3}), ("31-1", {31, 1})]
)
def test_a_range_of_days_may_run_past_the_end_of_the_month(field: str, days: set[int]) -> None:
    assert parse_fields(f"0 0 {field} * *").days.days == days


@pytest.mark.parametrize(
    ("field", "months"), [("NOV-MAR", {11, 12, 1, 2, 3}), ("11-3/2", {11, 1, 3}), ("dec-January", {12, 1})]
)
def test_a_range_of_months_may_run_past_the_end_of_the_year(field: str, months: set[int]) -> None:
    assert parse_fields(f"0 0 1 {field} *").months == months


def test_star_and_question_mark_are_every_number() -> None:
    for star in "*?":
        fields = parse_fields(" ".join(star * 6))
        assert fields.seconds == fields.minutes == tuple(range(60))
        assert fields.hours == tuple(range(24))
        assert fields.days.days == frozenset(range(1, 32))
        assert fields.months == frozenset(range(1, 13))
        assert fields.days.weekdays == frozenset(range(7))
        assert fields.days.needs_both
        assert fields.is_elapsed


def test_names_are_numbers_in_any_case() -> None:
    by_number = parse_fields("0 0 * 1,2,3,4,5,6,7,8,9,10,11,12 0,1,2,3,4,5,6")
    by_name = parse_fields("0 0 * jan,FEB,Mar,apr,may,jun,jul,aug,sep,oct,nov,dec sun,MON,Tue,wed,thu,fri,sat")
    assert by_name.months == by_number.months
    assert by_name.days.weekdays == by_number.days.weekdays


@pytest.mark.parametrize(
    ("field", "weekdays"),
    [
        ("7", {0}),
        ("0", {0}),
        ("0-7", set(range(7))),
        ("FRI-SUN", {5, 6, 0}),
        ("5-7", {5, 6, 0}),
        ("1-7/2", {1, 3, 5, 0}),
        ("SAT-SUN/1", {6, 0}),
        ("FRI-MON", {5, 6, 0, 1}),
        ("FRI-MON/3", {5, 1}),
        ("SAT-FRI", set(range(7))),
        ("7-1", {0, 1}),
        ("7-7", {0}),
        ("6-7", {6, 0}),
        ("1-0", set(range(7))),
        ("SUN-SUN", {0}),
    ],
)
def test_seven_is_sunday_and_a_range_may_end_with_it(field: str, weekdays: set[int]) -> None:
    assert parse_fields(f"0 0 * * {field}").days.weekdays == weekdays


@pytest.mark.parametrize(("field", "weekdays"), [("*/2", {0, 2, 4, 6}), ("2/2", {2, 4, 6}), ("6/1", {6}), ("0/7", {0})])
def test_a_step_through_the_week_ends_on_saturday(field: str, weekdays: set[int]) -> None:
    assert parse_fields(f"0 0 * * {field}").days.weekdays == weekdays


def test_the_special_days_of_a_month_are_kept_apart() -> None:
    days = parse_fields("0 0 L,L-3,LW,L-2W,15W,1W,31W,7 * 5L,FRIL,0L,7L,TUE#L,MON#2,1#5,WED-THU#3,L").days
    assert days.days == {7}
    assert days.last_offsets == {0, 3}
    assert days.nearest == {1, 15, 31}
    assert days.has_last_workday
    assert days.last_workday_offsets == {0, 2}
    assert days.last_weekdays == {5, 0, 2}
    assert days.nth_weekdays == {(1, 2), (1, 5), (3, 3), (4, 3)}
    assert days.weekdays == {6}


@pytest.mark.parametrize(
    ("days", "needs_both"),
    [
        ("* * *", True),
        ("* * MON", True),
        ("1 * *", True),
        ("*/2 * MON", True),
        ("1 * */2", True),
        ("? * MON", True),
        ("1 * ?", True),
        ("*,1 * MON", True),
        ("1 * MON", False),
        ("1,*/2 * MON", False),
        ("L * 5L", False),
        ("H * H", False),
        ("1-31 * 0-6", False),
        ("13 * +FRI", True),
        ("13 * +FRI,SAT", True),
        ("L * +*", True),
    ],
)
def test_a_day_must_fit_both_fields_with_a_star_or_plus_and_otherwise_either(days: str, needs_both: bool) -> None:
    assert parse_fields(f"0 0 {days}").days.needs_both is needs_both


@pytest.mark.parametrize(
    ("field", "is_elapsed"),
    [
        *[("*", True), ("*/2", True), ("?", True), ("?/6", True), ("*/1", True), ("*,2", True), ("*/2,3", True)],
        *[("0-23", False), ("2", False), ("2,*", False), ("H", False), ("H/6", False), ("0/6", False)],
    ],
)
def test_a_time_field_that_begins_with_a_star_is_elapsed(field: str, is_elapsed: bool) -> None:
    for expression in (f"0 {field} * * *", f"{field} 3 * * *", f"{field} 0 3 * * *"):
        assert parse_fields(expression).is_elapsed is is_elapsed, expression


def test_new_rules_of_a_zone_move_fixed_hours() -> None:
    """An expression that follows real time in those nights may still contain fixed hours."""
    zone = ZoneInfo("Europe/Berlin")
    assert parse_cron("* * * * *", zone).is_elapsed
    assert parse_cron("0 */6 * * *", zone).is_elapsed
    assert not parse_cron("* 9-17 * * *", zone).is_elapsed
    assert not parse_cron("*/10 9 * * *", zone).is_elapsed


def test_five_fields_fire_at_second_zero_and_six_have_seconds() -> None:
    assert parse_fields("1 2 3 4 5").seconds == (0,)
    assert parse_fields("9 1 2 3 4 5").seconds == (9,)
    assert parse_fields("1 2 3 4 5").texts == ("0", "1", "2", "3", "4", "5")


def test_spaces_and_tabs_between_the_fields_do_not_matter() -> None:
    fields = parse_fields("\t 5   4\t* * mon \n")
    assert fields.texts == ("0", "5", "4", "*", "*", "MON")
    assert fields.places[1:] == (2, 6, 8, 10, 12)


@pytest.mark.parametrize("alias", sorted(ALIASES))
def test_an_alias_is_its_expression_in_any_case(alias: str) -> None:
    assert (
        parse_fields(alias) == parse_fields(alias.upper()) == parse_fields(f" {alias} ") == parse_fields(ALIASES[alias])
    )


@given(st.integers(min_value=0, max_value=2**32).map(random.Random))
def test_a_field_parses_into_the_numbers_that_the_oracle_matches(chance: random.Random) -> None:
    expression = oracle.random_expression(chance)
    fields, judge = parse_fields(expression), oracle.Expression.read(expression)
    hours, minutes, seconds = judge.times()
    assert (fields.hours, fields.minutes, fields.seconds) == (
        tuple(sorted(hours)),
        tuple(sorted(minutes)),
        tuple(sorted(seconds)),
    )
    assert fields.is_elapsed == judge.is_elapsed


# H


def test_h_is_stable_for_a_seed() -> None:
    """Existing schedules depend on these numbers, so they must never change."""
    fields = parse_fields("H H H H H H", seed="nightly-report")
    assert (fields.seconds, fields.minutes, fields.hours) == ((0,), (4,), (23,))
    assert (set(fields.days.days), set(fields.months), set(fields.days.weekdays)) == ({18}, {12}, {0})
    assert parse_fields("H(10-19) H(0-7) * * *", seed="nightly-report").minutes == (14,)
    assert parse_fields("H/15 H/6 * * *", seed="nightly-report").minutes == (4, 19, 34, 49)


def test_h_in_different_fields_is_independent() -> None:
    pairs = Counter(
        (fields.minutes[0] // 20, fields.hours[0] // 8)
        for fields in (parse_fields("H H * * *", seed=seed) for seed in SEEDS)
    )
    assert len(pairs) == 9
    assert min(pairs.values()) > len(SEEDS) / 9 * 0.8


@pytest.mark.parametrize(
    ("expression", "numbers"),
    [
        ("H * * * *", range(60)),
        ("H(0-7) * * * *", range(8)),
        ("H(30-59) * * * *", range(30, 60)),
        ("H(5-5) * * * *", range(5, 6)),
    ],
)
def test_h_spreads_evenly_over_its_range_and_not_beyond(expression: str, numbers: range) -> None:
    found = Counter(parse_fields(expression, seed=seed).minutes for seed in SEEDS)
    assert set(found) == {(number,) for number in numbers}
    even = len(SEEDS) / len(numbers)
    assert all(0.4 * even <= count <= 1.7 * even for count in found.values())


def test_h_may_be_drawn_from_a_range_past_midnight() -> None:
    found = Counter(parse_fields("0 H(22-4) * * *", seed=seed).hours for seed in SEEDS)
    assert set(found) == {(22,), (23,), (0,), (1,), (2,), (3,), (4,)}
    assert min(found.values()) > len(SEEDS) / 7 * 0.8


def test_h_names_only_days_that_every_month_and_week_has() -> None:
    found = [parse_fields("0 0 H * *", seed=seed).days.days for seed in SEEDS]
    assert {day for days in found for day in days} == set(range(1, 29))
    assert {day for seed in SEEDS for day in parse_fields("0 0 * * H", seed=seed).days.weekdays} == set(range(7))
    assert {month for seed in SEEDS for month in parse_fields("0 0 1 H *", seed=seed).months} == set(range(1, 13))


@pytest.mark.parametrize(
    ("field", "step", "low", "high"),
    [("H/15", 15, 0, 59), ("H(0-29)/10", 10, 0, 29), ("H(10-50)/7", 7, 10, 50), ("H(3-5)/3", 3, 3, 5)],
)
def test_h_with_a_step_keeps_the_step_and_moves_the_start(field: str, step: int, low: int, high: int) -> None:
    starts = set()
    for seed in SEEDS[:1000]:
        minutes = minutes_of(field, seed)
        starts.add(minutes[0])
        assert minutes == tuple(range(minutes[0], high + 1, step))
    assert starts == set(range(low, min(low + step, high + 1)))


def test_h_works_in_lists_and_in_lower_case() -> None:
    assert set(minutes_of("0,h", "a job")) == {0, *minutes_of("H", "a job")}


# Errors


@pytest.mark.parametrize(
    ("expression", "field", "bad"),
    [
        ("60 * * * *", "minute", "60"),
        ("-1 * * * *", "minute", "-1"),
        ("* 24 * * *", "hour", "24"),
        ("* * 0 * *", "day-of-month", "0"),
        ("* * 32 * *", "day-of-month", "32"),
        ("* * * 0 *", "month", "0"),
        ("* * * 13 *", "month", "13"),
        ("* * * * 8", "day-of-week", "8"),
        ("60 * * * * *", "second", "60"),
        ("0 60 * * * *", "minute", "60"),
        ("1,2,99,4 * * * *", "minute", "99"),
        ("  7   5,25  * * *", "hour", "25"),
        ("*/0 * * * *", "minute", "*/0"),
        ("*/-5 * * * *", "minute", "*/-5"),
        ("*/ * * * *", "minute", "*/"),
        ("*/5/5 * * * *", "minute", "*/5/5"),
        ("/5 * * * *", "minute", "/5"),
        ("30-10 * * * *", "minute", "30-10"),
        ("30-10/5 * * * *", "minute", "30-10/5"),
        ("59-0 * * * * *", "second", "59-0"),
        ("H(30-10) * * * *", "minute", "H(30-10)"),
        ("* * * * * * 2030-2020", "year", "2030-2020"),
        ("* * * * * * 1969", "year", "1969"),
        ("* * * * * * 2200", "year", "2200"),
        ("* * * * * * 26", "year", "26"),
        ("* * * * * * H", "year", "H"),
        ("0 12 * * ? 2026", "day-of-week", "2026"),
        ("1-2-3 * * * *", "minute", "1-2-3"),
        ("5- * * * *", "minute", "5-"),
        ("1.5 * * * *", "minute", "1.5"),
        ("** * * * *", "minute", "**"),
        ("*5 * * * *", "minute", "*5"),
        ("JAN * * * *", "minute", "JAN"),
        ("* MON * * *", "hour", "MON"),
        ("* * * MON *", "month", "MON"),
        ("* * * januarys *", "month", "januarys"),
        ("* * * ja *", "month", "ja"),
        ("* * * * mondey", "day-of-week", "mondey"),
        ("* * * +JAN *", "month", "+JAN"),
        ("* * +5 * *", "day-of-month", "+5"),
        ("* * * * MON,+FRI", "day-of-week", "+FRI"),
        ("* * * * ++FRI", "day-of-week", "+FRI"),
        ("* * * * JAN", "day-of-week", "JAN"),
        ("* * * * MON#0", "day-of-week", "MON#0"),
        ("* * * * MON#6", "day-of-week", "MON#6"),
        ("* * * * MON#", "day-of-week", "MON#"),
        ("* * * * MON#-1", "day-of-week", "MON#-1"),
        ("* * * * MON-FRI#6", "day-of-week", "MON-FRI#6"),
        ("* * * * MON-XYZ#1", "day-of-week", "MON-XYZ#1"),
        ("* * * * L5", "day-of-week", "L5"),
        ("* * * * #2", "day-of-week", "#2"),
        ("* * * * XYZ#2", "day-of-week", "XYZ#2"),
        ("* * * * 8#2", "day-of-week", "8#2"),
        ("* * * * 8L", "day-of-week", "8L"),
        ("* * * * XYZL", "day-of-week", "XYZL"),
        ("* * * * MON-FRIL", "day-of-week", "MON-FRIL"),
        ("* * * * 15W", "day-of-week", "15W"),
        ("* * 0W * *", "day-of-month", "0W"),
        ("* * 32W * *", "day-of-month", "32W"),
        ("* * 1-5W * *", "day-of-month", "1-5W"),
        ("* * W * *", "day-of-month", "W"),
        ("* * L-31 * *", "day-of-month", "L-31"),
        ("* * L- * *", "day-of-month", "L-"),
        ("* * L/2 * *", "day-of-month", "L/2"),
        ("* * LW-1 * *", "day-of-month", "LW-1"),
        ("* * L-31W * *", "day-of-month", "L-31W"),
        ("* * L-W * *", "day-of-month", "L-W"),
        ("* * last * *", "day-of-month", "last"),
        ("* * 5L * *", "day-of-month", "5L"),
        ("* * MON#2 * *", "day-of-month", "MON#2"),
        ("L * * * *", "minute", "L"),
        ("* 5W * * *", "hour", "5W"),
        ("* * * L *", "month", "L"),
        ("H(60-70) * * * *", "minute", "H(60-70)"),
        ("H() * * * *", "minute", "H()"),
        ("H(1) * * * *", "minute", "H(1)"),
        ("H/0 * * * *", "minute", "H/0"),
        ("H-5 * * * *", "minute", "H-5"),
        ("* * * H(JAN-MAR) *", "month", "H(JAN-MAR)"),
        ("5,HH * * * *", "minute", "HH"),
        # Digits and letters of other scripts are not valid in cron, although Python accepts them.
        ("٣ * * * *", "minute", "٣"),
        ("*/٣ * * * *", "minute", "*/٣"),
        ("* * L-٣ * *", "day-of-month", "L-٣"),
        ("* * * * MON#٢", "day-of-week", "MON#٢"),
        ("* * * * \u017fun", "day-of-week", "\u017fun"),
        ("* * * * fr\u0131", "day-of-week", "fr\u0131"),
        ("ß,5 * * * *", "minute", "ß"),
        ("5,ŉ * * * *", "minute", "ŉ"),
    ],
)
def test_an_error_names_the_field_and_the_wrong_part(expression: str, field: str, bad: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_fields(expression)
    error = caught.value
    assert error.field == field
    assert expression[error.start : error.end] == bad
    assert error.detail.startswith(f"{field}: ")
    assert error.code == "invalid_cron"


@pytest.mark.parametrize(
    ("expression", "place"),
    [(",1 * * * *", 0), ("1,,2 * * * *", 2), ("1, * * * *", 2), ("* ,5 * * *", 2), ("* * * * 1,", 10)],
)
def test_an_empty_part_of_a_list_is_pointed_at(expression: str, place: int) -> None:
    with pytest.raises(CronError) as caught:
        parse_fields(expression)
    assert (caught.value.start, caught.value.end) == (place, place + 1)


@pytest.mark.parametrize(
    "expression",
    ["", " ", "*", "* * * *", "* * * * * * * *", "@", "@never", "@reboot", "@ daily", "@daily * * * *", "@every"],
)
def test_the_wrong_number_of_fields_and_an_unknown_alias_concern_the_whole_expression(expression: str) -> None:
    with pytest.raises(CronError) as caught:
        parse_fields(expression)
    assert caught.value.field == "expression"
    assert expression[caught.value.start : caught.value.end] == expression


def test_an_error_about_an_alias_lists_the_known_ones() -> None:
    with pytest.raises(CronError, match=r"@annually, @daily, .*@yearly"):
        parse_fields("@fortnightly")
    with pytest.raises(CronError, match="did you mean '@daily'"):
        parse_fields("@dialy")
    with pytest.raises(CronError, match="no such moment; let systemd"):
        parse_fields("@Reboot")


def test_the_length_of_an_expression_is_limited() -> None:
    longest = ",".join(["10"] * 164) + " * * * *"
    assert len(longest) == MAX_LENGTH - 1
    parse_fields(longest)
    with pytest.raises(CronError) as caught:
        parse_fields(longest + "  ")
    assert (caught.value.field, caught.value.start, caught.value.end) == ("expression", MAX_LENGTH, MAX_LENGTH + 1)


def test_a_cron_error_is_an_invalid_request() -> None:
    assert issubclass(CronError, Invalid)


@given(st.text(alphabet="0123456789*/-,?LWH#()@ MONJAN", max_size=40))
def test_an_error_always_points_into_the_expression(expression: str) -> None:
    error = None
    try:
        parse_fields(expression)
    except CronError as caught:
        error = caught
    assert error is None or (error.field and 0 <= error.start <= error.end <= len(expression) + 1)
