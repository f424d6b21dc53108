"""The effect of a change to a calendar on the jobs that use it: the days of a year on which they fire more or less
often. Only days that the change can touch are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from foliot.model.calendar import CalendarDays, calendar_of
from foliot.model.job import RecurringJob, job_timetable
from foliot.model.namespace import bare
from foliot.model.schedule_words import in_words
from foliot.triggers.base import DAY_SECONDS, Trigger, to_datetime, to_instant
from foliot.triggers.calendar import Calendar, OnExcluded

YEAR_DAYS = 366
# The days that are looked at for all jobs together, and at least for each.
LOOKED_MAX, LOOKED_MIN = 2_000, 20
# The ticks that are counted on each day; and on the first day of a job that has more of them.
EACH_MAX, FIRST_MAX = 4, 200
DAYS_SHOWN = 60


class DayEffect(msgspec.Struct, frozen=True):
    date: str
    """The day in the time zone of the calendar."""
    before: int
    """How often the job fires that day with the calendar as it is saved."""
    after: int


class JobEffect(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    schedule_words: str
    timezone: str
    on_excluded: OnExcluded
    is_paused: bool
    next_before: datetime | None
    next_after: datetime | None
    """Null if the job would never fire again."""
    lost: int
    """The fires of a year that go."""
    gained: int
    """The fires of a year that come, or that are moved to another day."""
    days: list[DayEffect]
    """The days that differ, at most sixty."""
    more: bool
    """Whether more days may differ: then `lost` and `gained` count those that were looked at."""
    is_estimate: bool
    """Whether the fires of a day are not counted one by one."""

    @property
    def is_changed(self) -> bool:
        return bool(self.days) or self.next_before != self.next_after

    @property
    def is_over(self) -> bool:
        return self.next_after is None and self.next_before is not None


def effects(jobs: Sequence[RecurringJob], before: CalendarDays, after: CalendarDays, now: int) -> list[JobEffect]:
    """The effect on each job: first those that would never fire again, then those that change most."""
    most = max(LOOKED_MIN, LOOKED_MAX // max(1, len(jobs)))
    touched = _touched(calendar_of(before), calendar_of(after), now)
    usual: dict[Trigger, int] = {}
    found = [_effect(job, before, after, touched[:most], now, usual, is_cut=len(touched) > most) for job in jobs]
    return sorted(found, key=lambda one: (not one.is_over, not one.is_changed, -one.lost - one.gained, one.name))


def _touched(before: Calendar, after: Calendar, now: int) -> list[int]:
    """The days on which a job may fire more or less often, counted from 1970-01-01: those that only one of the
    calendars excludes, and those to which it moves their ticks."""
    today = after.day_of(now)
    year = range(today, today + YEAR_DAYS)
    found = {day for day in year if before.excludes(day) != after.excludes(day)}
    if before.zone != after.zone:
        excluded = [day for day in year if before.excludes(day) or after.excludes(day)]
        found.update(other for day in excluded for other in (day - 1, day, day + 1))
    moved = {calendar.next_allowed(day) for day in found for calendar in (before, after)}
    return sorted(day for day in found | moved if day is not None and day >= today)


def _effect(
    job: RecurringJob,
    before: CalendarDays,
    after: CalendarDays,
    touched: Sequence[int],
    now: int,
    usual: dict[Trigger, int],
    *,
    is_cut: bool,
) -> JobEffect:
    """`usual`: how often triggers fire on a day, where it is often."""
    made_at = to_instant(job.created_at)
    old = job_timetable(job.schedule, job.id, made_at, before)
    new = job_timetable(job.schedule, job.id, made_at, after)
    calendar = calendar_of(after)
    changed, is_estimate = list[DayEffect](), False
    for day in touched:
        begin, end = max(now + 1, calendar.start_of(day)), calendar.start_of(day + 1)
        was, will = _count(old.fires, begin, end, usual), _count(new.fires, begin, end, usual)
        is_estimate |= max(was, will) > EACH_MAX
        if was != will:
            changed.append(DayEffect(to_datetime(day * DAY_SECONDS).date().isoformat(), was, will))
    return JobEffect(
        job.id,
        bare(job.name),
        in_words(job.schedule, str(job.id)),
        job.schedule.timezone,
        job.schedule.on_excluded,
        job.paused_at is not None,
        _next(old.fires, now, job),
        _next(new.fires, now, job),
        sum(max(0, one.before - one.after) for one in changed),
        sum(max(0, one.after - one.before) for one in changed),
        changed[:DAYS_SHOWN],
        is_cut or len(changed) > DAYS_SHOWN,
        is_estimate,
    )


def _count(fires: Trigger, begin: int, end: int, usual: dict[Trigger, int]) -> int:
    """How many fires a day has. A trigger that fires often is counted on one day, and the others are like it."""
    count, last = 0, begin
    tick = fires.next_after(begin - 1)
    while tick is not None and tick < end:
        if count == EACH_MAX and fires in usual:
            return usual[fires]
        if count == FIRST_MAX:
            count = round(count * (end - begin) / (last + 1 - begin))
            break
        count, last = count + 1, tick
        tick = fires.next_after(tick)
    if count > EACH_MAX:
        usual[fires] = count
    return count


def _next(fires: Trigger, now: int, job: RecurringJob) -> datetime | None:
    tick = fires.next_after(now)
    return None if tick is None else to_datetime(tick).astimezone(job.timetable.zone)
