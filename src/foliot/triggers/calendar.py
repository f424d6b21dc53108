"""Exclusion calendars: named days on which nothing is due, or on which it is put off to the next allowed day.

A day is a day of the calendar's own zone. A fire that is put off keeps its time of day; where it then meets another, there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal
from zoneinfo import ZoneInfo

from foliot.triggers.base import DAY_SECONDS, EPOCH_ORDINAL, Trigger
from foliot.triggers.wall import WallPolicy, next_instant
from foliot.triggers.zones import offset_at

OnExcluded = Literal["skip", "move"]
# Days in a row that a calendar may exclude before the search gives up: ten years.
LONGEST_SEARCH_DAYS = 3660


@dataclass(frozen=True, slots=True)
class Calendar:
    """`dates` and `weekdays` (0 is Monday) are excluded."""

    zone: ZoneInfo
    dates: frozenset[date] = frozenset()
    weekdays: frozenset[int] = frozenset()

    def excludes(self, day: int) -> bool:
        """Whether a day, counted from 1970-01-01, is excluded."""
        # That day was a Thursday.
        return (day + 3) % 7 in self.weekdays or (bool(self.dates) and date.fromordinal(day + EPOCH_ORDINAL) in self.dates)

    def day_of(self, instant: int) -> int:
        return (instant + offset_at(self.zone, instant)) // DAY_SECONDS

    def start_of(self, day: int) -> int:
        """The first instant of a day, or of what there is of it."""
        midnight = day * DAY_SECONDS
        found = next_instant(WallPolicy(self.zone), lambda wall: midnight if wall < midnight else None, midnight - 2 * DAY_SECONDS)
        return midnight if found is None else found

    def next_allowed(self, day: int) -> int | None:
        """This day or the first one after it that is not excluded."""
        return next((other for other in range(day, day + LONGEST_SEARCH_DAYS) if not self.excludes(other)), None)


@dataclass(frozen=True, slots=True)
class CalendarTrigger:
    inner: Trigger
    calendar: Calendar
    on_excluded: OnExcluded = "skip"

    def next_after(self, instant: int) -> int | None:
        kept = self._next_kept(instant)
        if self.on_excluded == "skip":
            return kept
        moved = self._next_moved(instant, kept)
        return min((found for found in (kept, moved) if found is not None), default=None)

    def _next_kept(self, instant: int) -> int | None:
        """The next fire on an allowed day. An excluded day is left in one step, however often it fires."""
        calendar = self.calendar
        for _ in range(LONGEST_SEARCH_DAYS):
            found = self.inner.next_after(instant)
            if found is None or not calendar.excludes(calendar.day_of(found)):
                return found
            allowed = calendar.next_allowed(calendar.day_of(found))
            if allowed is None:
                return None
            instant = calendar.start_of(allowed) - 1
        return None

    def _next_moved(self, instant: int, kept: int | None) -> int | None:
        """The next fire that is put off from an excluded day to an allowed one after `instant`, and not after `kept`."""
        calendar, today = self.calendar, self.calendar.day_of(instant)
        day = today
        while calendar.excludes(day - 1) and today - day < LONGEST_SEARCH_DAYS:
            day -= 1
        if calendar.excludes(today):
            allowed = calendar.next_allowed(today)
            return None if allowed is None else self._moved_from(day, allowed, instant)
        found = self._moved_from(day, today, instant) if day < today else None
        if found is not None:
            return found
        # Nothing more today: look at the next days that are excluded and do fire, as far as a kept fire is away.
        last = today + LONGEST_SEARCH_DAYS if kept is None else calendar.day_of(kept)
        tick = self.inner.next_after(instant)
        while tick is not None and (here := calendar.day_of(tick)) <= last:
            if calendar.excludes(here):
                allowed = calendar.next_allowed(here)
                return None if allowed is None else self._moved_from(here, allowed, instant)
            tick = self.inner.next_after(calendar.start_of(here + 1) - 1)
        return None

    def _moved_from(self, first: int, allowed: int, instant: int) -> int | None:
        """The first fire after `instant` of those put off from the days [first, allowed) to the day `allowed`."""
        calendar, start = self.calendar, self.calendar.start_of(allowed)
        elapsed = max(0, instant - start + 1)
        moved = []
        for day in range(first, allowed):
            begins, ends = calendar.start_of(day), calendar.start_of(day + 1)
            tick = self.inner.next_after(begins + elapsed - 1)
            if tick is not None and tick < ends:
                moved.append(start + tick - begins)
        return min(moved, default=None)
