"""A recurring job, as it is kept."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from foliot.errors import Invalid
from foliot.model.calendar import CalendarDays, calendar_of
from foliot.model.jitter import tick_jitter
from foliot.model.schedule import Schedule, Timetable, timetable_of
from foliot.triggers.base import last_ticks, to_datetime, to_instant
from foliot.triggers.dst import fold_of

DstFlag = Literal["after_gap", "first_of_two", "second_of_two"]
# Control characters, invisible ones, line and paragraph separators.
NOT_IN_NAMES = frozenset({"Cc", "Cf", "Zl", "Zp"})
# Invisible too, but parts of emoji and of words.
JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"


@dataclass(frozen=True, slots=True)
class RecurringJob:
    id: UUID
    name: str
    task: str
    queue: str
    priority: int
    schedule: Schedule
    payload: Any
    options: Any
    version: int
    runs_left: int | None
    next_at: datetime | None
    fire_at: datetime | None
    paused_at: datetime | None
    paused_until: datetime | None
    paused_reason: str | None
    created_at: datetime
    updated_at: datetime
    shard: int
    utc_offset: int | None = None
    """That of the job's zone at its next tick, as it was when the tick was found."""
    calendar: CalendarDays | None = None
    calendar_version: int | None = None

    @property
    def found_under(self) -> int | None:
        """The version of the calendar on which it depends where the next tick is."""
        return self.calendar_version if self.schedule.on_excluded == "move" else None

    @property
    def timetable(self) -> Timetable:
        return job_timetable(self.schedule, self.id, to_instant(self.created_at), self.calendar)


@dataclass(frozen=True, slots=True)
class DueJob:
    """The part of a due job that a scheduler needs. Times are in seconds, as in triggers."""

    id: UUID
    version: int
    tick: int
    fire: int
    """The tick plus its jitter."""
    schedule: Schedule
    anchor: int
    """When the job was made."""
    shard: int
    utc_offset: int | None
    calendar: CalendarDays | None

    @property
    def timetable(self) -> Timetable:
        return job_timetable(self.schedule, self.id, self.anchor, self.calendar)


def job_timetable(schedule: Schedule, job_id: UUID, made_at: int, calendar: CalendarDays | None) -> Timetable:
    # Jobs that share an expression share one timetable, unless it depends on the job: by H, or by where it counts from.
    seed = str(job_id) if any("H" in expression.upper() for expression in schedule.expressions) else ""
    anchor = made_at if schedule.every is not None else 0
    return timetable_of(schedule, seed, anchor, None if calendar is None else calendar_of(calendar))


def fire_of(schedule: Schedule, job_id: UUID, tick: int) -> int:
    """When a tick is to fire, jitter and all."""
    return tick + tick_jitter(schedule.jitter_seconds, job_id, tick)


def dst_flag(job: RecurringJob, tick: int) -> DstFlag | None:
    """The effect of a clock change on a tick: it was moved out of a gap, or its local time occurs twice."""
    without_gap = replace(job, schedule=msgspec.structs.replace(job.schedule, dst_gap="skip")).timetable.ticks
    if without_gap.next_after(tick - 1) != tick:
        return "after_gap"
    fold = fold_of(job.timetable.zone, tick)
    return None if fold is None else "first_of_two" if fold == "first" else "second_of_two"


def scheduled_from(job: RecurringJob, now: datetime) -> RecurringJob:
    """The job with its cursor on the first tick after now."""
    return with_cursor(
        job, job.timetable.first_after(to_instant(now), to_instant(job.next_at) if job.next_at else None)
    )


def with_cursor(job: RecurringJob, tick: int | None) -> RecurringJob:
    return replace(
        job,
        next_at=None if tick is None else to_datetime(tick),
        fire_at=None if tick is None else to_datetime(fire_of(job.schedule, job.id, tick)),
        utc_offset=job.timetable.offset_of(tick),
    )


def resumed(job: RecurringJob, now: datetime) -> tuple[RecurringJob, datetime | None, datetime | None]:
    """The job as it continues from now, and the first and last tick that it missed during its pause."""
    at = to_instant(now)
    missed = (
        []
        if job.next_at is None or job.runs_left == 0
        else last_ticks(job.timetable.ticks, to_instant(job.next_at) - 1, at, 1)
    )
    later = scheduled_from(job, now)
    return later, job.next_at if missed else None, to_datetime(missed[0]) if missed else None


def check_name(name: str) -> None:
    """A name stands in paths beside ids, so it must be one segment of a path, and no id. Raises `Invalid` for what is
    not."""
    if any(unicodedata.category(character) in NOT_IN_NAMES and character not in JOINERS for character in name):
        raise Invalid("name: must have no control characters", field="name")
    if "/" in name or name in (".", ".."):
        raise Invalid("name: must have no '/' and must not be '.' or '..', which are not found in a path", field="name")
    if name != name.strip():
        raise Invalid("name: must not begin or end with a blank", field="name")
    if name != unicodedata.normalize("NFC", name):
        raise Invalid(
            "name: must be in Unicode's normal form C, or two names that look alike would be two jobs", field="name"
        )
    if _is_uuid(name):
        raise Invalid("name: looks like an id; choose another", field="name")


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
