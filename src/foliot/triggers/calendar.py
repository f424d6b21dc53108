"""Exclusion calendars: named days on which nothing is due, or on which it is put off to the next allowed day.

A day is a day of the calendar's own zone. A fire that is put off keeps its time of day on the wall; where it then meets
another, there is one. Where that time is skipped or repeated on the new day, it is the first instant after the gap, or
the first of the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal
from zoneinfo import ZoneInfo

from foliot.triggers.base import DAY_SECONDS, EARLIEST, EPOCH_ORDINAL, LATEST, Trigger
from foliot.triggers.dst import WallPolicy, next_instant
from foliot.triggers.zones import next_transition, offset_at

OnExcluded = Literal["skip", "move"]
# Days in a row that a calendar may exclude before the search gives up: ten years.
LONGEST_SEARCH_DAYS = 3660
# Fires in a row that a calendar may swallow before the search gives up: forty years of a weekly one.
MOST_FIRES_EXCLUDED = 2100


@dataclass(frozen=True, slots=True)
class Calendar:
    """`dates` and `weekdays` (0 is Monday) are excluded."""

    zone: ZoneInfo
    dates: frozenset[date] = frozenset()
    weekdays: frozenset[int] = frozenset()

    def excludes(self, day: int) -> bool:
        """Whether a day, counted from 1970-01-01, is excluded."""
        # That day was a Thursday.
        return (day + 3) % 7 in self.weekdays or (
            bool(self.dates) and date.fromordinal(day + EPOCH_ORDINAL) in self.dates
        )

    def excludes_instant(self, instant: int) -> bool:
        return self.excludes(self.day_of(instant))

    def day_of(self, instant: int) -> int:
        return (instant + offset_at(self.zone, instant)) // DAY_SECONDS

    def start_of(self, day: int) -> int:
        """The first instant of a day, or of what there is of it."""
        midnight = day * DAY_SECONDS
        found = next_instant(
            WallPolicy(self.zone), lambda wall: midnight if wall < midnight else None, midnight - 2 * DAY_SECONDS
        )
        return midnight if found is None else found

    def stretches_of(self, day: int) -> Iterator[tuple[int, int, int]]:
        """The instants [begin, end) of a day and their offset: one stretch, or more where the offset changes that
        day."""
        midnight = day * DAY_SECONDS
        begin, latest = midnight - DAY_SECONDS, midnight + 2 * DAY_SECONDS
        while begin < latest:
            offset, transition = offset_at(self.zone, begin), next_transition(self.zone, begin, latest)
            end = latest if transition is None else transition.instant
            first, last = max(begin, midnight - offset), min(end, midnight + DAY_SECONDS - offset)
            if first < last:
                yield first, last, offset
            begin = end

    def next_allowed(self, day: int) -> int | None:
        """This day or the first one after it that is not excluded."""
        return next((other for other in range(day, day + LONGEST_SEARCH_DAYS) if not self.excludes(other)), None)


@dataclass(frozen=True, slots=True)
class CalendarTrigger:
    inner: Trigger
    calendar: Calendar
    on_excluded: OnExcluded = "skip"

    @property
    def is_elapsed(self) -> bool:
        return self.inner.is_elapsed and self.on_excluded == "skip"

    def next_after(self, instant: int) -> int | None:
        if instant >= LATEST:
            return None
        instant = max(instant, EARLIEST)
        return self._next_kept(instant) if self.on_excluded == "skip" else self._next_kept_or_moved(instant)

    def _next_kept(self, instant: int) -> int | None:
        """The next fire on an allowed day. An excluded day is left in one step, however often it fires."""
        calendar = self.calendar
        found = self.inner.next_after(instant)
        for _ in range(MOST_FIRES_EXCLUDED):
            if found is None or not calendar.excludes(day := calendar.day_of(found)):
                return found
            allowed = calendar.next_allowed(day)
            if allowed is None:
                return None
            found = self.inner.next_after(found)
            if found is not None and calendar.day_of(found) < allowed:
                found = self.inner.next_after(calendar.start_of(allowed) - 1)
        return None

    def _next_kept_or_moved(self, instant: int) -> int | None:
        calendar, today = self.calendar, self.calendar.day_of(instant)
        first = today
        while calendar.excludes(first - 1) and today - first < LONGEST_SEARCH_DAYS:
            first -= 1
        # The ticks that were moved here from an earlier day ...
        moved = self._moved_from(first, today, instant)
        if moved is None:
            # ... or else those of the next day that fires, if that day is excluded.
            found = self.inner.next_after(instant)
            if found is None or not calendar.excludes(day := calendar.day_of(found)):
                return found
            moved = self._moved_from(day, day, instant)
        if moved is None:
            return None
        # The new day's own fires may come before.
        kept = self.inner.next_after(max(instant, calendar.start_of(calendar.day_of(moved)) - 1))
        return moved if kept is None else min(moved, kept)

    def _moved_from(self, first: int, last: int, instant: int) -> int | None:
        """The first fire after `instant` of those put off from `first` and the days after it to the first allowed day
        from `last` on."""
        allowed = self.calendar.next_allowed(last)
        if allowed is None or allowed == first:
            return None
        midnight = allowed * DAY_SECONDS

        def next_wall(wall: int) -> int | None:
            times = [self._time_on(day, max(0, wall + 1 - midnight)) for day in range(first, allowed)]
            return min((midnight + time for time in times if time is not None), default=None)

        return next_instant(WallPolicy(self.calendar.zone), next_wall, instant)

    def _time_on(self, day: int, earliest: int) -> int | None:
        """The first time of day, at or after the earliest, at which this day fires."""
        times = []
        midnight = day * DAY_SECONDS
        for begin, end, offset in self.calendar.stretches_of(day):
            tick = self.inner.next_after(max(begin, midnight + earliest - offset) - 1)
            if tick is not None and tick < end:
                times.append(tick + offset - midnight)
        return min(times, default=None)
