"""From wall times to instants: what a trigger that thinks in wall times does on the two odd nights of the year.

A trigger of *fixed* times (09:30 every day) keeps its promise of one fire: in a gap it fires at the first instant after
it (`shift`) or not at all (`skip`), in a fold the first time, the last, or both times. A trigger of *elapsed* times
(every hour) follows real time: every wall time that exists fires as often as it exists, and none is invented.

The walk is done in UTC, from one transition of the zone to the next, and so is strictly increasing whatever the zone
does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from zoneinfo import ZoneInfo

from foliot.triggers.base import DAY_SECONDS, EARLIEST, LATEST
from foliot.triggers.zones import Transition, last_transition, next_transition, offset_at

DstGap = Literal["shift", "skip"]
DstFold = Literal["first", "last", "both"]
# A transition skips or repeats no more than a day (Apia skipped one in 2011).
LONGEST_TRANSITION = DAY_SECONDS


@dataclass(frozen=True, slots=True)
class WallPolicy:
    zone: ZoneInfo
    dst_gap: DstGap = "shift"
    dst_fold: DstFold = "first"
    is_elapsed: bool = False

    @property
    def repeats(self) -> bool:
        return self.is_elapsed or self.dst_fold == "both"


def next_instant(policy: WallPolicy, next_wall: Callable[[int], int | None], after: int) -> int | None:
    """The first instant after `after` whose wall time the trigger names. `next_wall` gives the first named wall time
    after another."""
    if after >= LATEST:
        return None
    instant = max(after, EARLIEST)
    offset = offset_at(policy.zone, instant)
    # The wall time after which to look. Inside the repeated hour it may lie at its end.
    wall = max(instant + offset, _end_of_repeat(policy, instant) - 1)
    while True:
        found = next_wall(wall)
        # The one transition that can bring back wall times which are past already.
        transition = next_transition(policy.zone, instant, instant + LONGEST_TRANSITION)
        if found is not None and (candidate := found - offset) <= LATEST:
            if transition is None and candidate - instant > 4 * LONGEST_TRANSITION:
                # Ticks that earlier transitions skip or repeat are not reported: only one near the end can matter.
                instant, wall = candidate - 2 * LONGEST_TRANSITION, found - 1
                offset = offset_at(policy.zone, instant)
                continue
            transition = transition or next_transition(policy.zone, instant, candidate + LONGEST_TRANSITION)
            if transition is None or (candidate < transition.instant and not _comes_again(policy, transition, found)):
                return candidate
            if transition.is_gap and candidate >= transition.instant and _is_moved_out_of(policy, transition, found):
                return transition.instant
        elif transition is None:
            return None
        instant, offset = transition.instant, transition.after
        wall = _start_after(policy, transition) - 1


def fold_of(zone: ZoneInfo, instant: int) -> Literal["first", "second"] | None:
    """Which of the two it is, of an instant whose wall time comes twice."""
    before = last_transition(zone, instant - LONGEST_TRANSITION, instant)
    if before is not None and not before.is_gap and instant + before.after < before.instant + before.before:
        return "second"
    after = next_transition(zone, instant, instant + LONGEST_TRANSITION)
    if after is not None and not after.is_gap and instant + after.before >= after.instant + after.after:
        return "first"
    return None


def _comes_again(policy: WallPolicy, transition: Transition, wall: int) -> bool:
    """Whether this wall time, before the transition, is to wait for its second coming after it."""
    return policy.dst_fold == "last" and not policy.is_elapsed and wall >= transition.instant + transition.after


def _is_moved_out_of(policy: WallPolicy, gap: Transition, wall: int) -> bool:
    return policy.dst_gap == "shift" and not policy.is_elapsed and wall < gap.instant + gap.after


def _start_after(policy: WallPolicy, transition: Transition) -> int:
    """The first wall time that counts after a transition."""
    if transition.is_gap or policy.repeats or policy.dst_fold == "last":
        return transition.instant + transition.after
    return transition.instant + transition.before


def _end_of_repeat(policy: WallPolicy, instant: int) -> int:
    """The wall time at which the repeated hour ends for a trigger that does not fire in it; long past when there is
    none."""
    found = last_transition(policy.zone, instant - LONGEST_TRANSITION, instant)
    if found is None or found.is_gap:
        return -LATEST
    return _start_after(policy, found)
