"""Cron: the wall times that an expression names, and when they come."""

from __future__ import annotations

from bisect import bisect_left
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from zoneinfo import ZoneInfo

from foliot.triggers.base import DAY_SECONDS, EPOCH_ORDINAL
from foliot.triggers.cron_fields import CronError, CronFields, Days, parse_fields
from foliot.triggers.dst import DstFold, DstGap, WallPolicy, next_instant
from foliot.triggers.notation import read_notation
from foliot.triggers.zones import zone_named

# A year of the same length that begins on the same weekday comes within 40 years (28, but for 2100, which is no leap
# year): a day not found by then does not exist. Years that are named one by one are at most 230.
SEARCH_YEARS = 40
# The last instant that counts falls into it, in some zones late.
LAST_YEAR = 2200


@dataclass(frozen=True, slots=True)
class CronTrigger:
    expression: str
    fields: CronFields
    policy: WallPolicy

    @property
    def is_elapsed(self) -> bool:
        """One with fixed hours follows real time in the night when the clocks change, but its hours are those on the
        wall."""
        return self.fields.is_any_hour

    def next_after(self, instant: int) -> int | None:
        return next_instant(self.policy, self.next_wall, instant)

    def next_wall(self, wall: int) -> int | None:
        """The first wall time after this one that the expression names."""
        day, second = divmod(wall + 1, DAY_SECONDS)
        here = date.fromordinal(day + EPOCH_ORDINAL)
        if self._names(here):
            time = self._time_from(second)
            if time is not None:
                return day * DAY_SECONDS + time
        found = self._next_day(here)
        first = self._time_from(0)
        if found is None or first is None:
            return None
        return (found.toordinal() - EPOCH_ORDINAL) * DAY_SECONDS + first

    def _names(self, day: date) -> bool:
        fields = self.fields
        is_year = fields.years is None or day.year in fields.years
        return is_year and day.month in fields.months and day.day in _days_in(fields.days, day.year, day.month)

    def _next_day(self, after: date) -> date | None:
        for year in self._years_from(after.year):
            is_first = year == after.year
            for month in range(after.month if is_first else 1, 13):
                if month in self.fields.months:
                    days = _days_in(self.fields.days, year, month)
                    place = bisect_left(days, after.day + 1 if is_first and month == after.month else 1)
                    if place < len(days):
                        return date(year, month, days[place])
        return None

    def _years_from(self, year: int) -> Sequence[int]:
        years = self.fields.years
        if years is not None:
            return years[bisect_left(years, year) :]
        return range(year, min(year + SEARCH_YEARS, LAST_YEAR) + 1)

    def _time_from(self, second: int) -> int | None:
        """The first named time of a day at or after this second of it."""
        hour, rest = divmod(second, 3600)
        minute, second = divmod(rest, 60)
        fields = self.fields
        hours = fields.hours[bisect_left(fields.hours, hour) :]
        if hours and hours[0] == hour:
            minutes = fields.minutes[bisect_left(fields.minutes, minute) :]
            if minutes and minutes[0] == minute:
                place = bisect_left(fields.seconds, second)
                if place < len(fields.seconds):
                    return hour * 3600 + minute * 60 + fields.seconds[place]
                minutes = minutes[1:]
            if minutes:
                return hour * 3600 + minutes[0] * 60 + fields.seconds[0]
            hours = hours[1:]
        return hours[0] * 3600 + fields.minutes[0] * 60 + fields.seconds[0] if hours else None


def parse_cron(
    expression: str,
    zone: ZoneInfo | None = None,
    *,
    seed: str = "",
    dst_gap: DstGap = "shift",
    dst_fold: DstFold = "first",
    is_stored: bool = False,
) -> CronTrigger:
    """Without a zone, that of the expression (`CRON_TZ=`), or UTC. Raises `CronError` for what is not cron and for what
    can never fire.

    `is_stored`: a job has it already, so it keeps its meaning where a new one would be refused.
    """
    notation = read_notation(expression)
    if notation.every is not None:
        raise CronError(
            f"this is a period and no cron expression: use every: {notation.every}",
            field="expression",
            end=len(expression),
        )
    if notation.zone is not None:
        own = zone_named(notation.zone)
        if zone is not None and zone.key != own.key:
            raise CronError(
                f"the expression says {own.key} and timezone says {zone.key}: leave one of them out",
                field="timezone",
                end=len(expression),
            )
        zone = own
    try:
        return _trigger_of(notation.expression, zone or zone_named("UTC"), seed, dst_gap, dst_fold, is_stored=is_stored)
    except CronError as error:
        if not notation.is_rewritten:
            raise
        raise CronError(error.detail, field=error.field, end=len(expression)) from None


def _trigger_of(
    expression: str, zone: ZoneInfo, seed: str, dst_gap: DstGap, dst_fold: DstFold, *, is_stored: bool
) -> CronTrigger:
    fields = parse_fields(expression, seed=seed)
    if fields.refusal is not None and not is_stored:
        raise fields.refusal
    trigger = CronTrigger(expression, fields, WallPolicy(zone, dst_gap, dst_fold, fields.is_elapsed))
    if trigger.next_wall(0) is None:
        day, month, weekday = fields.texts[3:6]
        years = "" if fields.years is None else f" of the years {fields.texts[6]!r}"
        raise CronError(
            f"day-of-month: {day!r} never comes in month {month!r}{years} on day-of-week {weekday!r}, so this never "
            f"fires",
            field="day-of-month",
            start=fields.places[3],
            end=fields.places[3] + len(day),
        )
    return trigger


def _days_in(rule: Days, year: int, month: int) -> tuple[int, ...]:
    """The days of a month that the two day fields name, in order."""
    first_weekday, length = monthrange(year, month)
    # calendar counts from Monday, cron from Sunday
    return _days_of(rule, (first_weekday + 1) % 7, length)


@lru_cache(maxsize=8192)
def _days_of(rule: Days, weekday_of_first: int, length: int) -> tuple[int, ...]:
    by_date = {day for day in rule.days if day <= length}
    by_date |= {length - before for before in rule.last_offsets if before < length}
    by_date |= {_nearest_workday(day, length, weekday_of_first) for day in rule.nearest if day <= length}
    by_date |= {
        _nearest_workday(length - before, length, weekday_of_first)
        for before in rule.last_workday_offsets
        if before < length
    }
    by_weekday = {
        day for weekday in rule.weekdays for day in range(1 + (weekday - weekday_of_first) % 7, length + 1, 7)
    }
    for weekday, nth in rule.nth_weekdays:
        day = 1 + (weekday - weekday_of_first) % 7 + 7 * (nth - 1)
        if day <= length:
            by_weekday.add(day)
    for weekday in rule.last_weekdays:
        last = length - (weekday_of_first + length - 1 - weekday) % 7
        by_weekday.add(last)
    return tuple(sorted(by_date & by_weekday if rule.needs_both else by_date | by_weekday))


def _nearest_workday(day: int, length: int, weekday_of_first: int) -> int:
    """The workday nearest to a day, in the same month."""
    weekday = (weekday_of_first + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day
