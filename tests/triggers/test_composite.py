"""Composite triggers: once, unions, and bounds."""

from __future__ import annotations

import random
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foliot.triggers.base import LATEST, Trigger, fire_times
from foliot.triggers.calendar import Calendar, CalendarTrigger
from foliot.triggers.composite import BoundedTrigger, OnceTrigger, UnionTrigger
from foliot.triggers.cron import parse_cron
from foliot.triggers.dst import WallPolicy
from foliot.triggers.interval import IntervalTrigger
from tests.triggers import oracle
from tests.triggers.oracle import DAY, instant_of

UTC_ZONE = ZoneInfo("UTC")
START = instant_of(2024)
HOURLY = IntervalTrigger(3600, START, WallPolicy(UTC_ZONE))

instants = st.integers(min_value=START, max_value=instant_of(2032))
zones = st.sampled_from(oracle.ZONES)
policies = st.builds(WallPolicy, zones, st.sampled_from(["shift", "skip"]), st.sampled_from(["first", "last", "both"]))


def some_cron(chance: random.Random, policy: WallPolicy) -> Trigger:
    expression = oracle.random_night_expression(chance)
    return parse_cron(expression, policy.zone, dst_gap=policy.dst_gap, dst_fold=policy.dst_fold)


def all_kinds() -> st.SearchStrategy[Trigger]:
    simple: st.SearchStrategy[Trigger] = st.one_of(
        st.builds(OnceTrigger, instants),
        st.builds(IntervalTrigger, st.sampled_from([600, 3600, 100_000, DAY, 2 * DAY, 7 * DAY]), instants, policies),
        st.builds(some_cron, st.integers(min_value=0, max_value=2**32).map(random.Random), policies),
    )
    calendars = st.builds(Calendar, zones, weekdays=st.frozensets(st.integers(min_value=0, max_value=6), max_size=6))
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.builds(UnionTrigger, st.lists(inner, max_size=3).map(tuple)),
            st.builds(BoundedTrigger, inner, st.none() | instants, st.none() | instants),
            st.builds(CalendarTrigger, inner, calendars, st.sampled_from(["skip", "move"])),
        ),
        max_leaves=3,
    )


def test_once_fires_once() -> None:
    trigger = OnceTrigger(START)
    assert trigger.next_after(START - 1) == START
    assert trigger.next_after(0) == START
    assert trigger.next_after(START) is None
    assert OnceTrigger(LATEST).next_after(0) == LATEST
    assert OnceTrigger(LATEST + 1).next_after(0) is None


def test_a_union_fires_once_where_several_meet() -> None:
    union = UnionTrigger(
        (HOURLY, parse_cron("0 */2 * * *", UTC_ZONE), parse_cron("30 1 * * *", UTC_ZONE), OnceTrigger(START + 3600))
    )
    assert fire_times(union, START, 4) == [START + 3600, START + 5400, START + 7200, START + 10_800]


def test_a_union_ends_with_its_last_trigger_and_an_empty_one_never_fires() -> None:
    union = UnionTrigger((OnceTrigger(START + 5), OnceTrigger(START + 3), OnceTrigger(START + 5)))
    assert fire_times(union, START, 9) == [START + 3, START + 5]
    assert UnionTrigger(()).next_after(0) is None


def test_bounds_are_inclusive() -> None:
    bounded = BoundedTrigger(HOURLY, START + 3600, START + 3 * 3600)
    assert fire_times(bounded, 0, 9) == [START + 3600, START + 7200, START + 10_800]
    assert fire_times(BoundedTrigger(HOURLY, START + 3601, START + 3 * 3600 - 1), 0, 9) == [START + 7200]
    assert fire_times(BoundedTrigger(HOURLY, start=START + 7200), 0, 1) == [START + 7200]
    assert fire_times(BoundedTrigger(HOURLY, end=START), 0, 9) == [START]


def test_empty_bounds_never_fire() -> None:
    assert BoundedTrigger(HOURLY, START + 1, START + 3599).next_after(0) is None
    assert BoundedTrigger(HOURLY, START + 7200, START).next_after(0) is None
    assert BoundedTrigger(HOURLY, LATEST + 1).next_after(0) is None


@given(
    st.lists(
        st.tuples(st.integers(min_value=1, max_value=50), st.integers(min_value=0, max_value=50)),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 99),
)
def test_a_union_is_the_sorted_set_of_the_ticks_of_its_triggers(intervals: list[tuple[int, int]], after: int) -> None:
    union = UnionTrigger(tuple(IntervalTrigger(period, anchor, WallPolicy(UTC_ZONE)) for period, anchor in intervals))
    judged = sorted(
        {instant for period, anchor in intervals for instant in range(anchor, 200, period) if instant > after}
    )
    assert fire_times(union, after, len(judged)) == judged


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(all_kinds(), instants, st.integers(min_value=1, max_value=100))
def test_every_trigger_is_strictly_increasing_and_consistent(trigger: Trigger, after: int, share: int) -> None:
    found = fire_times(trigger, after, 12)
    previous = after
    for instant in found:
        assert previous < instant <= LATEST
        assert trigger.next_after(previous + (instant - previous) * share // 101) == instant
        assert trigger.next_after(instant - 1) == instant
        previous = instant
    if len(found) < 12:
        assert trigger.next_after(previous) is None
        assert trigger.next_after(previous + 1000 * DAY) is None


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(all_kinds(), st.integers(min_value=instant_of(2199), max_value=10**13))
def test_every_trigger_ends_with_none_in_the_far_future(trigger: Trigger, after: int) -> None:
    assert all(after < instant <= LATEST for instant in fire_times(trigger, after, 5))
    assert trigger.next_after(LATEST) is None


@pytest.mark.parametrize("count", [0, 1, 3])
def test_fire_times_is_limited_by_count_and_by_the_schedule(count: int) -> None:
    assert len(fire_times(HOURLY, START, count)) == count
    assert fire_times(OnceTrigger(START), 0, count) == [START][:count]
