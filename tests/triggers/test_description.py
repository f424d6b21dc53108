"""Cron expressions in words: common ones read naturally, and every expression has a description."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.triggers.cron_fields import parse_fields
from foliot.triggers.description import explain, explain_period, notes_on
from tests.triggers import oracle


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/1 * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0 * * * *", "at minute 0"),
        ("? ? ? ? ?", "every minute"),
        ("0 */2 * * *", "at minute 0, every 2 hours"),
        ("30 9 * * *", "at 09:30"),
        ("0 9,17 * * MON-FRI", "at 09:00 and 17:00, on Monday to Friday"),
        ("15 30 9 * * *", "at 09:30:15"),
        ("* * * * * *", "every second"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("*/10 */5 * * * *", "every 10 seconds, every 5 minutes"),
        ("*/15 9-17 * * *", "every 15 minutes, at hours 9 to 17"),
        ("*/20,5 * * * *", "at minutes 0, 5, 20 and 40"),
        ("0 0 1 * *", "at 00:00, on day 1 of the month"),
        ("0 0 1,15 * *", "at 00:00, on day 1 and 15 of the month"),
        ("0 0 L * *", "at 00:00, on the last day of the month"),
        ("0 0 L-3 * *", "at 00:00, on the day 3 before the last of the month"),
        ("0 0 LW * *", "at 00:00, on the last workday of the month"),
        ("0 0 15W * *", "at 00:00, on the workday nearest to day 15"),
        ("0 0 * * 5L", "at 00:00, on the last Friday of the month"),
        ("0 0 * * MON#2", "at 00:00, on the second Monday of the month"),
        ("0 0 * * SAT,SUN", "at 00:00, on Sunday and Saturday"),
        ("0 0 13 * FRI", "at 00:00, on day 13 of the month or on Friday"),
        ("0 0 */10 * MON", "at 00:00, on day 1, 11, 21 and 31 of the month when that is Monday"),
        ("0 0 1 JAN,JUL *", "at 00:00, on day 1 of the month, in January and July"),
        ("@yearly", "at 00:00, on day 1 of the month, in January"),
        ("0 22-4 * * *", "at minute 0, at hours 22 to 4"),
        ("30 22-4/2 * * *", "at 00:30, 02:30, 04:30 and 22:30"),
        ("0 9 * * FRI-MON", "at 09:00, on Friday to Monday"),
        ("0 9 * NOV-MAR *", "at 09:00, in November to March"),
        ("0 9 * november,Dec *", "at 09:00, in November and December"),
        ("0 0 28-3 * *", "at 00:00, on day 28 to 3 of the month"),
        ("0 0 13 * +FRI", "at 00:00, on day 13 of the month when that is Friday"),
        ("0 0 L-1W * *", "at 00:00, on the workday nearest to the day 1 before the last of the month"),
        ("0 0 * * FRI#L", "at 00:00, on the last Friday of the month"),
        ("0 0 * * MON#1,MON#3", "at 00:00, on the first Monday of the month and the third Monday of the month"),
        ("0 0 * * MON-WED#1", "at 00:00, on the first Monday, Tuesday and Wednesday of the month"),
        ("0 0 * * *,MON", "at 00:00, on Sunday, Monday, Tuesday, Wednesday, Thursday, Friday and Saturday"),
        ("0 0 9 ? * * 2026", "at 09:00, in 2026"),
        ("0 0 9 ? * * 2026,2028", "at 09:00, in 2026 and 2028"),
        ("0 0 9 1 1 ? 2026-2030", "at 09:00, on day 1 of the month, in January, in the years 2026 to 2030"),
        ("0 0 9 ? * * 2026/2", "at 09:00, in the years 2026, 2028, 2030 and so on to 2198"),
        ("0 0 9 ? * * *", "at 09:00"),
    ],
)
def test_common_expressions_read_naturally(expression: str, words: str) -> None:
    assert explain(parse_fields(expression)) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "second"),
        (300, "5 minutes"),
        (5400, "1 hour and 30 minutes"),
        (86_400, "day"),
        (694_861, "1 week, 1 day, 1 hour, 1 minute and 1 second"),
    ],
)
def test_a_period_is_described_in_its_units(seconds: int, words: str) -> None:
    assert explain_period(seconds) == f"every {words}, counted from when the job is made or from its start_at"


@pytest.mark.parametrize(
    ("expression", "notes"),
    [
        (
            "*/7 * * * *",
            ["minute: */7 starts again with each hour, 4 minutes after its last; for an even period, use every: 7m"],
        ),
        (
            "*/50 0 * * * *",
            [
                "second: */50 starts again with each minute, 10 seconds after its last; for an even period, use "
                "every: 50s"
            ],
        ),
        (
            "0 */5 * * *",
            ["hour: */5 starts again with each day, 4 hours after its last; for an even period, use every: 5h"],
        ),
        ("0 0 */2 * *", ["day-of-month: */2 starts again on the 1st of each month; for an even period, use every: 2d"]),
        ("0 0 1 */5 *", ["month: */5 starts again with each year, 2 months after its last"]),
        ("0 0 * * */2", ["day-of-week: */2 starts again on each Sunday; for an even period, use every: 2d"]),
        ("0 0 13 * FRI", ["a day that fits one of 13 and FRI is enough; for days that fit both, write +FRI"]),
        (
            "0 0 9 ? * 2-6",
            [
                "day-of-week: 0 and 7 are Sunday here and 1 is Monday, as in crontabs; in Quartz 1 is Sunday: names "
                "leave no doubt"
            ],
        ),
        *[
            (expression, [])
            for expression in (
                "*/15 * * * *",
                "0 */6 * * *",
                "0 0 * */4 *",
                "* * * * *",
                "*/60 * * * *",
                "0 0 9 ? * MON#2",
            )
        ],
        *[(expression, []) for expression in ("0 9 ? * 2-6", "0 0 9 * * 2-6", "0 0 13 * +FRI", "5-50/7 * * * *")],
    ],
)
def test_surprising_behaviour_is_noted(expression: str, notes: list[str]) -> None:
    assert notes_on(parse_fields(expression)) == notes


def test_h_is_described_by_its_value() -> None:
    fields = parse_fields("H H(0-7) * * *", seed="a job")
    assert explain(fields) == f"at {fields.hours[0]:02}:{fields.minutes[0]:02}"


@given(st.integers(min_value=0, max_value=2**32).map(random.Random))
def test_every_expression_has_a_complete_description(chance: random.Random) -> None:
    words = explain(parse_fields(oracle.random_expression(chance)))
    assert words
    assert not any(
        hole in f" {words} " for hole in ("  ", " ,", ",,", " on ,", " on and", "()", " None", " in ,", "every ,")
    )
    assert not words.endswith((" on", " in", " and", ","))
