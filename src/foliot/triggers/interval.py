"""A fixed interval, counted from an anchor.

An interval of whole days keeps the local time of day, however long a day was. Any other interval is elapsed time: its
ticks are always the same number of seconds apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from foliot.triggers.base import DAY_SECONDS, LATEST
from foliot.triggers.dst import WallPolicy, next_instant
from foliot.triggers.zones import offset_at


@dataclass(frozen=True, slots=True)
class IntervalTrigger:
    period: int
    anchor: int
    policy: WallPolicy

    @property
    def is_elapsed(self) -> bool:
        return self.period % DAY_SECONDS != 0

    def next_after(self, instant: int) -> int | None:
        if self.is_elapsed:
            steps = max(0, (instant - self.anchor) // self.period + 1)
            found = self.anchor + steps * self.period
            return found if found <= LATEST else None
        if instant < self.anchor:
            # The anchor itself is the first, even where the policy would have chosen the other coming of its wall time.
            return self.anchor if self.anchor <= LATEST else None
        return next_instant(self.policy, self._next_wall, instant)

    def _next_wall(self, wall: int) -> int:
        anchor = self.anchor + _offset(self.policy, self.anchor)
        return anchor + max(0 if self.policy.repeats else 1, (wall - anchor) // self.period + 1) * self.period


@lru_cache(maxsize=4096)
def _offset(policy: WallPolicy, instant: int) -> int:
    return offset_at(policy.zone, instant)
