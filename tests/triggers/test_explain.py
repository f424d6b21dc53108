"""A cron expression in words: those that people write read well, and none is left without words."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.triggers.cron_fields import parse_fields
from foliot.triggers.explain import explain
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
    ],
)
def test_an_expression_reads_as_a_person_would_say_it(expression: str, words: str) -> None:
    assert explain(parse_fields(expression)) == words


def test_h_is_explained_by_what_it_became() -> None:
    fields = parse_fields("H H(0-7) * * *", seed="a job")
    assert explain(fields) == f"at {fields.hours[0]:02}:{fields.minutes[0]:02}"


@given(st.integers(min_value=0, max_value=2**32).map(random.Random))
def test_every_expression_has_words_and_no_holes_in_them(chance: random.Random) -> None:
    words = explain(parse_fields(oracle.random_expression(chance)))
    assert words
    assert not any(hole in f" {words} " for hole in ("  ", " ,", ",,", " on ,", " on and", "()", " None", " in ,", "every ,"))
    assert not words.endswith((" on", " in", " and", ","))
