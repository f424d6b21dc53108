"""Intervals: elapsed time below a day, calendar days from there on, and no drift in either."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foliot.triggers.base import LATEST, fire_times, to_datetime
from foliot.triggers.dst import DstFold, DstGap, WallPolicy
from foliot.triggers.interval import IntervalTrigger
from tests.triggers import oracle
from tests.triggers.oracle import DAY, instant_of

NEW_YORK = ZoneInfo("America/New_York")
HOUR = 3600
FIRST_OF_TWO = instant_of(2024, 11, 3, 5, 30)
"""01:30 in New York, to come again an hour later."""
LAST_OF_TWO = FIRST_OF_TWO + HOUR

zones = st.sampled_from(oracle.ZONES)
anchors = st.integers(min_value=instant_of(2023), max_value=instant_of(2032))
policies = st.builds(WallPolicy, zones, st.sampled_from(["shift", "skip"]), st.sampled_from(["first", "last", "both"]))


def every(
    period: int, anchor: int, zone: ZoneInfo = NEW_YORK, dst_gap: DstGap = "shift", dst_fold: DstFold = "first"
) -> IntervalTrigger:
    return IntervalTrigger(period, anchor, WallPolicy(zone, dst_gap, dst_fold))


def walls_of(trigger: IntervalTrigger, after: int, count: int) -> list[str]:
    return [
        datetime.fromtimestamp(instant, trigger.policy.zone).strftime("%m-%d %H:%M%z")
        for instant in fire_times(trigger, after, count)
    ]


@pytest.mark.parametrize("period", [1, 60, 7 * 60, HOUR, 5 * HOUR, DAY - 1, DAY + 1, 36 * HOUR])
def test_periods_other_than_whole_days_are_elapsed_time(period: int) -> None:
    for transition in (instant_of(2024, 3, 10, 7), instant_of(2024, 11, 3, 6)):
        anchor = transition - 10 * period - period // 3
        assert fire_times(every(period, anchor), transition - 3 * period, 10) == [
            anchor + n * period for n in range(8, 18)
        ]


def test_whole_days_keep_their_local_time_through_clock_changes() -> None:
    daily = every(DAY, instant_of(2024, 1, 1, 9, zone="America/New_York"))
    assert walls_of(daily, instant_of(2024, 3, 8, 20), 3) == [
        "03-09 09:00-0500",
        "03-10 09:00-0400",
        "03-11 09:00-0400",
    ]
    assert walls_of(daily, instant_of(2024, 11, 1, 20), 3) == [
        "11-02 09:00-0400",
        "11-03 09:00-0500",
        "11-04 09:00-0500",
    ]


def test_whole_days_in_a_gap_are_shifted_for_that_day_alone_or_skipped() -> None:
    anchor = instant_of(2024, 1, 1, 2, 30, zone="America/New_York")
    after = instant_of(2024, 3, 9, 0)
    assert walls_of(every(DAY, anchor), after, 3) == ["03-09 02:30-0500", "03-10 03:00-0400", "03-11 02:30-0400"]
    assert walls_of(every(DAY, anchor, dst_gap="skip"), after, 3) == [
        "03-09 02:30-0500",
        "03-11 02:30-0400",
        "03-12 02:30-0400",
    ]


def test_whole_days_in_a_fold_follow_the_policy() -> None:
    anchor = instant_of(2024, 1, 1, 1, 30, zone="America/New_York")
    after = instant_of(2024, 11, 3)
    assert walls_of(every(DAY, anchor), after, 2) == ["11-03 01:30-0400", "11-04 01:30-0500"]
    assert walls_of(every(DAY, anchor, dst_fold="last"), after, 2) == ["11-03 01:30-0500", "11-04 01:30-0500"]
    assert walls_of(every(DAY, anchor, dst_fold="both"), after, 3) == [
        "11-03 01:30-0400",
        "11-03 01:30-0500",
        "11-04 01:30-0500",
    ]


def test_weeks_are_seven_days_at_the_same_time_of_day() -> None:
    weekly = every(7 * DAY, instant_of(2024, 2, 25, 8, zone="America/New_York"))
    assert walls_of(weekly, instant_of(2024, 2, 26), 3) == ["03-03 08:00-0500", "03-10 08:00-0400", "03-17 08:00-0400"]


@pytest.mark.parametrize("period", [HOUR, DAY, 3 * DAY])
def test_the_anchor_is_the_first_instant_and_nothing_comes_before_it(period: int) -> None:
    anchor = instant_of(2030, 6, 1, 12)
    for after in (0, instant_of(2024), anchor - 1):
        assert every(period, anchor).next_after(after) == anchor
    assert every(period, anchor).next_after(anchor) == anchor + period


@pytest.mark.parametrize("dst_fold", ["first", "last"])
@pytest.mark.parametrize("anchor", [FIRST_OF_TWO, LAST_OF_TWO])
def test_an_anchor_in_a_fold_is_the_first_instant_and_fires_once(dst_fold: DstFold, anchor: int) -> None:
    daily = every(DAY, anchor, dst_fold=dst_fold)
    assert fire_times(daily, instant_of(2024), 3) == [anchor, LAST_OF_TWO + DAY, LAST_OF_TWO + 2 * DAY]
    assert daily.next_after(FIRST_OF_TWO + 60) == (LAST_OF_TWO if anchor == LAST_OF_TWO else LAST_OF_TWO + DAY)


def test_an_anchor_in_a_fold_fires_twice_with_the_policy_both() -> None:
    assert fire_times(every(DAY, FIRST_OF_TWO, dst_fold="both"), 0, 3) == [FIRST_OF_TWO, LAST_OF_TWO, LAST_OF_TWO + DAY]
    assert fire_times(every(DAY, LAST_OF_TWO, dst_fold="both"), 0, 2) == [LAST_OF_TWO, LAST_OF_TWO + DAY]


@given(st.integers(min_value=1, max_value=40 * DAY), anchors, anchors)
def test_elapsed_time_never_drifts(period: int, anchor: int, after: int) -> None:
    if period % DAY == 0:
        period += 1
    found = every(period, anchor).next_after(after)
    assert found is not None
    assert found == anchor if after < anchor else (found - anchor) % period == 0 and found - period <= after < found


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(min_value=1, max_value=40), anchors, anchors, policies)
def test_whole_days_never_drift_from_the_local_time_of_the_anchor(
    days: int, anchor: int, after: int, policy: WallPolicy
) -> None:
    trigger = IntervalTrigger(days * DAY, anchor, policy)
    wall = datetime.fromtimestamp(anchor, policy.zone).replace(tzinfo=None)
    found = fire_times(trigger, after, 4)
    assert found == sorted(set(found))
    assert found[0] > after
    for instant in found[:2]:
        shown = datetime.fromtimestamp(instant, policy.zone).replace(tzinfo=None)
        if shown.time() != wall.time():
            # If it is shifted, this is the end of a gap, and the skipped time belongs to this series.
            assert policy.dst_gap == "shift"
            missing = shown.replace(hour=wall.hour, minute=wall.minute, second=wall.second)
            missing = missing if missing < shown else missing - timedelta(days=1)
            assert oracle.instant_at(missing, policy.zone) == instant
            assert instant == oracle.instant_at(shown, policy.zone)
            shown = missing
        assert (shown - wall).total_seconds() % (days * DAY) == 0
    # No tick is left out: two neighbours are a period apart, give or take the clock change, or twice that over a
    # skipped gap.
    for early, late in pairwise(found):
        assert abs(late - early - days * DAY) <= 2 * HOUR or policy.dst_gap == "skip" or policy.dst_fold == "both"


@given(st.integers(min_value=1, max_value=100 * DAY), anchors, policies, st.lists(anchors, min_size=2, max_size=8))
def test_a_later_start_never_gives_an_earlier_tick(
    period: int, anchor: int, policy: WallPolicy, starts: list[int]
) -> None:
    trigger = IntervalTrigger(period, anchor, policy)
    found = [(start, trigger.next_after(start) or 0) for start in sorted(starts)]
    for (_, first), (start, second) in pairwise(found):
        assert second > start
        assert first == second or first <= start < second


@pytest.mark.parametrize("period", [HOUR, DAY, 365 * DAY])
def test_the_series_ends_with_the_last_instant(period: int) -> None:
    trigger = every(period, instant_of(2024), ZoneInfo("UTC"))
    found = fire_times(trigger, LATEST - 2 * period, 10)
    assert found == [
        instant for instant in range(instant_of(2024), LATEST + 1, period) if instant > LATEST - 2 * period
    ]
    assert trigger.next_after(LATEST) is None
    assert trigger.next_after(10**30) is None
    assert every(period, LATEST + 1).next_after(0) is None


@pytest.mark.parametrize("period", [HOUR, DAY])
def test_an_anchor_at_the_first_or_last_datetime_does_not_crash(period: int) -> None:
    for zone in oracle.ZONES:
        found = every(period, -62_135_596_800, zone).next_after(instant_of(2024))
        assert found is not None
        assert to_datetime(found) <= datetime(2024, 1, 2, tzinfo=UTC)
        assert every(period, instant_of(9999, 12, 31), zone).next_after(instant_of(2024)) is None
