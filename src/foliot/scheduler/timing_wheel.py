"""A hierarchical timing wheel: adds and removes items that are due soon in constant time.

Level 0 has a slot for each of the next 256 ticks, level 1 for each of the next 256 turns of level 0, and so on. A
distant item sits in a coarse slot and moves down when its turn comes. Instants are integers in any unit; the wheel has
no clock of its own.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

BITS = 8
SLOTS = 1 << BITS
MASK = SLOTS - 1
LEVELS = 4


class TimingWheel(Generic[T]):
    def __init__(self, now: int) -> None:
        self._now = now
        self._levels: list[dict[int, list[tuple[int, T]]]] = [{} for _ in range(LEVELS)]
        self._overdue: list[tuple[int, T]] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, due: int, item: T) -> None:
        """The next `advance` returns an item that is already due, even if the time does not move."""
        self._size += 1
        if due <= self._now:
            self._overdue.append((due, item))
        else:
            self._place(due, due, item)

    def advance(self, now: int) -> list[tuple[int, T]]:
        """Everything due up to and including `now`, in order of its instant."""
        due, self._overdue = self._overdue, []
        self._size -= len(due)
        while self._now < now:
            if not self._size:
                self._now = now
                break
            self._now = self._next_stop(now)
            for level in range(LEVELS - 1, 0, -1):
                if self._now & ((1 << (BITS * level)) - 1) == 0:
                    self._cascade(level)
            taken = self._levels[0].pop(self._now & MASK, ())
            self._size -= len(taken)
            due.extend(taken)
        due.sort(key=lambda entry: entry[0])
        return due

    def next_due(self) -> int | None:
        """The earliest instant at which an item is due, or at which a distant item moves down a level."""
        if not self._size:
            return None
        if self._overdue:
            return self._now
        stops = []
        for level, slots in enumerate(self._levels):
            if slots:
                place = self._now >> (BITS * level)
                stops.append(min((place + ((slot - place - 1) & MASK) + 1) << (BITS * level) for slot in slots))
        return min(stops)

    def _place(self, position: int, due: int, item: T) -> None:
        distance = position - self._now
        level = next((level for level in range(LEVELS) if distance < 1 << (BITS * (level + 1))), LEVELS - 1)
        if distance >= 1 << (BITS * LEVELS):
            # Beyond the range of the wheel: it goes into the last slot and is placed again from there.
            position = self._now + (1 << (BITS * LEVELS)) - 1
        self._levels[level].setdefault((position >> (BITS * level)) & MASK, []).append((due, item))

    def _cascade(self, level: int) -> None:
        for due, item in self._levels[level].pop((self._now >> (BITS * level)) & MASK, ()):
            self._place(max(due, self._now), due, item)

    def _next_stop(self, now: int) -> int:
        """The next instant at which a slot has items, so that empty slots are skipped."""
        found = self.next_due()
        return now if found is None else min(now, found)
