"""The last tick before an instant is found without walking through all ticks before it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from foliot.triggers.base import Trigger, last_before
from foliot.triggers.composite import BoundedTrigger, OnceTrigger, UnionTrigger
from foliot.triggers.cron import parse_cron
from foliot.triggers.dst import WallPolicy
from foliot.triggers.interval import IntervalTrigger

BERLIN = ZoneInfo("Europe/Berlin")
MARCH = 1_774_000_000
"""A few days before the clocks change in Berlin."""
EXPRESSIONS = ["0 2 * * *", "30 2 * * *", "*/5 9-17 * * 1-5", "* * 9-10 * * *", "0 0 29 2 *", "0 0 1 1 *"]


class Counting:
    """Counts the calls of a trigger."""

    is_elapsed = False

    def __init__(self, trigger: Trigger) -> None:
        self._trigger = trigger
        self.questions = 0

    def next_after(self, instant: int) -> int | None:
        self.questions += 1
        return self._trigger.next_after(instant)


def walk(trigger: Trigger, start: int) -> Iterator[int]:
    tick = trigger.next_after(start)
    while tick is not None:
        yield tick
        tick = trigger.next_after(tick)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_last_tick_before_a_tick_is_its_predecessor(expression: str) -> None:
    trigger = parse_cron(expression, BERLIN)
    ticks = [tick for tick, _ in zip(walk(trigger, MARCH), range(60), strict=False)]
    for before, tick in pairwise(ticks):
        assert last_before(trigger, tick) == before
        assert last_before(trigger, tick, tick - before) == before
        assert last_before(trigger, random.Random(tick).randint(before + 1, tick)) == before


def test_a_regular_schedule_needs_three_calls() -> None:
    trigger = Counting(parse_cron("0 2 * * *", BERLIN))
    assert last_before(trigger, MARCH - MARCH % 86_400 + 3600, 86_400) is not None
    assert trigger.questions <= 3


def test_many_old_ticks_are_not_walked_through() -> None:
    """Fires every second from nine to ten, so the last tick is 22 hours before the next."""
    trigger = Counting(parse_cron("* * 9-10 * * *", BERLIN))
    first = trigger.next_after(MARCH - MARCH % 86_400 + 12 * 3600)
    assert first is not None
    assert last_before(trigger, first) == first - 22 * 3600 - 1
    assert trigger.questions < 60


def test_there_is_no_tick_before_the_first() -> None:
    bounded = BoundedTrigger(IntervalTrigger(60, MARCH, WallPolicy(BERLIN)), start=MARCH)
    assert last_before(bounded, MARCH) is None
    assert last_before(bounded, MARCH + 60) == MARCH
    once = UnionTrigger((OnceTrigger(MARCH), OnceTrigger(MARCH + 5)))
    assert [last_before(once, MARCH + offset) for offset in (0, 1, 5, 6)] == [None, MARCH, MARCH, MARCH + 5]
