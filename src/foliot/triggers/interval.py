"""Every so often, counted from an anchor.

A period below a day, or no whole number of days, is elapsed time: always that many seconds apart. Whole days are calendar days: the same
time on the wall, however long the day was.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from foliot.triggers.base import DAY_SECONDS, LATEST
from foliot.triggers.wall import WallPolicy, next_instant
from foliot.triggers.zones import offset_at


@dataclass(frozen=True, slots=True)
class IntervalTrigger:
    period: int
    anchor: int
    policy: WallPolicy

    def next_after(self, instant: int) -> int | None:
        if self.period % DAY_SECONDS:
            steps = max(0, (instant - self.anchor) // self.period + 1)
            found = self.anchor + steps * self.period
            return found if found <= LATEST else None
        # Nothing is due before the anchor; and the anchor itself is the first.
        return next_instant(self.policy, self._next_wall, max(instant, self.anchor - 1))

    def _next_wall(self, wall: int) -> int:
        anchor = self.anchor + _offset(self.policy, self.anchor)
        return anchor + max(0, (wall - anchor) // self.period + 1) * self.period


@lru_cache(maxsize=4096)
def _offset(policy: WallPolicy, instant: int) -> int:
    return offset_at(policy.zone, instant)
