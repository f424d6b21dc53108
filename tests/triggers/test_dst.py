"""From local times to instants, for any list of local times: the two policies hold as defined."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foliot.triggers.base import LATEST
from foliot.triggers.dst import DstFold, DstGap, WallPolicy, next_instant
from tests.triggers import oracle
from tests.triggers.oracle import DAY, instant_of

# Every policy; for elapsed times the other two must not matter.
POLICIES: list[tuple[DstGap, DstFold, bool]] = list(
    product(("shift", "skip"), ("first", "last", "both"), (False, True))
)
NEW_YORK = ZoneInfo("America/New_York")
APIA = ZoneInfo("Pacific/Apia")
# Special cases: Apia 2011 (a skipped day), Caracas 2007 and Pyongyang 2018 (half an hour, permanently), and Troll (two
# hours).
ODD_NIGHTS = [
    *oracle.transitions(),
    (APIA, instant_of(2011, 12, 30, 10)),
    (ZoneInfo("America/Caracas"), instant_of(2007, 12, 9, 7)),
    (ZoneInfo("Asia/Pyongyang"), instant_of(2018, 5, 4, 15)),
    (ZoneInfo("Antarctica/Troll"), instant_of(2024, 3, 31, 1)),
    (ZoneInfo("Antarctica/Troll"), instant_of(2024, 10, 27, 1)),
]


def from_list(walls: list[int]) -> Callable[[int], int | None]:
    def next_wall(wall: int) -> int | None:
        place = bisect_right(walls, wall)
        return walls[place] if place < len(walls) else None

    return next_wall


def instants_of(policy: WallPolicy, walls: list[int], after: int) -> list[int]:
    found = []
    while (instant := next_instant(policy, from_list(walls), after)) is not None:
        found.append(instant)
        after = instant
    return found


def comings(wall: datetime, zone: ZoneInfo) -> list[int]:
    """Every instant with this local time, found by trying each possible offset."""
    guesses = {wall.replace(tzinfo=UTC) + timedelta(minutes=minutes) for minutes in range(-15 * 60, 15 * 60, 15)}
    return sorted(int(guess.timestamp()) for guess in guesses if guess.astimezone(zone).replace(tzinfo=None) == wall)


def judged(policy: WallPolicy, walls: list[int], after: int) -> list[int]:
    found: set[int] = set()
    for wall in walls:
        shown = datetime.fromtimestamp(wall, UTC).replace(tzinfo=None)
        instants = comings(shown, policy.zone)
        if policy.is_elapsed or policy.dst_fold == "both":
            found.update(instants)
        elif instants:
            found.add(instants[0 if policy.dst_fold == "first" else -1])
        if not instants and policy.dst_gap == "shift" and not policy.is_elapsed:
            found.add(oracle.instant_at(shown, policy.zone))
    return sorted(instant for instant in found if instant > after)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(ODD_NIGHTS),
    st.sampled_from(POLICIES),
    st.lists(st.integers(min_value=-2 * 96, max_value=2 * 96), min_size=1, max_size=12),
    st.lists(st.integers(min_value=-3000, max_value=3000), max_size=2),
    st.integers(min_value=-2 * DAY, max_value=2 * DAY),
)
def test_any_local_times_fire_as_the_policies_define(
    night: tuple[ZoneInfo, int], chosen: tuple[DstGap, DstFold, bool], quarters: list[int], days: list[int], start: int
) -> None:
    """Local times at each quarter of an hour around a transition, and some that are months and years away, with many
    other transitions in between."""
    zone, transition = night
    policy = WallPolicy(zone, *chosen)
    middle = transition + int((zone.utcoffset(datetime.fromtimestamp(transition, zone)) or timedelta()).total_seconds())
    walls = sorted({middle + quarter * 900 for quarter in quarters} | {middle + day * DAY for day in days})
    assert instants_of(policy, walls, transition + start) == judged(policy, walls, transition + start)


@pytest.mark.parametrize(("dst_gap", "dst_fold"), list(product(("shift", "skip"), ("first", "last", "both"))))
def test_the_next_instants_do_not_depend_on_the_start(dst_gap: DstGap, dst_fold: DstFold) -> None:
    for transition in (instant_of(2024, 3, 10, 7), instant_of(2024, 11, 3, 6)):
        policy = WallPolicy(NEW_YORK, dst_gap, dst_fold)
        walls = [transition - 5 * 3600 + minutes * 60 for minutes in range(-120, 180, 20)]
        everything = instants_of(policy, walls, transition - 12 * 3600)
        for after in range(transition - 4 * 3600, transition + 4 * 3600, 300):
            assert instants_of(policy, walls, after) == [instant for instant in everything if instant > after]


def test_the_end_of_a_gap_fires_once_for_all_skipped_times() -> None:
    walls = [instant_of(2024, 3, 10, 2, minute) for minute in range(60)]
    assert instants_of(WallPolicy(NEW_YORK), walls, 0) == [instant_of(2024, 3, 10, 7)]
    assert instants_of(WallPolicy(NEW_YORK, "skip"), walls, 0) == []
    assert instants_of(WallPolicy(NEW_YORK, is_elapsed=True), walls, 0) == []


def test_a_skipped_day_ends_where_the_next_begins() -> None:
    walls = [instant_of(2011, 12, day, 12) for day in (29, 30, 31)]
    begins = instant_of(2011, 12, 30, 10)
    assert instants_of(WallPolicy(APIA), walls, 0) == [begins - 12 * 3600, begins, begins + 12 * 3600]
    assert instants_of(WallPolicy(APIA, "skip"), walls, 0) == [begins - 12 * 3600, begins + 12 * 3600]


def test_a_local_time_centuries_away_is_found_quickly() -> None:
    asked = 0
    far = instant_of(2199, 7, 1, 12)

    def next_wall(wall: int) -> int | None:
        nonlocal asked
        asked += 1
        return far if wall < far else None

    assert next_instant(WallPolicy(NEW_YORK), next_wall, instant_of(1971)) == far + 4 * 3600
    assert asked < 5


def test_there_is_no_tick_beyond_the_last_instant() -> None:
    walls = [LATEST - 1, LATEST, LATEST + 1, LATEST + DAY]
    assert instants_of(WallPolicy(ZoneInfo("UTC")), walls, 0) == [LATEST - 1, LATEST]
    assert next_instant(WallPolicy(ZoneInfo("UTC")), from_list(walls), LATEST) is None
