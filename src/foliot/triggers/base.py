"""The interface of every trigger."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Protocol

EPOCH_ORDINAL = 719_163  # date(1970, 1, 1).toordinal()
DAY_SECONDS = 86_400
# The last instant that a trigger may name: 2200-01-01.
LATEST = 7_258_118_400
# Before this, 1900-01-01, no wall time is looked for. It keeps what any datetime can express within what arithmetic on
# dates can.
EARLIEST = -2_208_988_800


class Trigger(Protocol):
    @property
    def is_elapsed(self) -> bool:
        """Whether it follows real time rather than the clock on the wall: then new rules of its zone do not move what
        is due."""
        ...

    def next_after(self, instant: int) -> int | None:
        """The first due instant strictly after this one; None when there is none any more."""
        ...


def fire_times(trigger: Trigger, after: int, count: int) -> list[int]:
    return list(islice(_walk(trigger, after), count))


def _walk(trigger: Trigger, after: int) -> Iterator[int]:
    found = trigger.next_after(after)
    while found is not None:
        yield found
        found = trigger.next_after(found)


def last_before(trigger: Trigger, instant: int, reach: int = 1) -> int | None:
    """The last due instant strictly before this one; None when there is none.

    `reach` is a guess of how far back it lies. The search doubles the guess until it meets a due instant, then halves
    the rest, so its cost does not depend on how many there are.
    """
    while True:
        start = max(instant - reach, EARLIEST)
        found = trigger.next_after(start - 1)
        if found is not None and found < instant:
            break
        if start == EARLIEST:
            return None
        reach *= 2
    end = instant
    while (later := trigger.next_after(found)) is not None and later < end:
        found, middle = later, (later + end + 1) // 2
        later = trigger.next_after(middle - 1)
        if later is not None and later < end:
            found = later
        else:
            end = middle
    return found


def to_datetime(instant: float) -> datetime:
    return datetime.fromtimestamp(instant, UTC)


def to_instant(moment: datetime) -> int:
    """Fractions of a second are cut towards the past."""
    return int(moment.timestamp() // 1)


def last_ticks(trigger: Trigger, after: int, until: int, count: int) -> list[int]:
    """The last `count` ticks in (after, until]. Looks back in growing steps, so its cost does not depend on how long
    ago `after` was."""
    span = 1
    while count and after < until:
        start = max(after, until - span)
        found: deque[int] = deque(maxlen=count)
        tick = trigger.next_after(start)
        while tick is not None and tick <= until:
            found.append(tick)
            tick = trigger.next_after(tick)
        if len(found) == count or start == after:
            return list(found)
        span *= 2
    return []
