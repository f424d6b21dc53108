"""A recurring job, as it is kept."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from foliot.errors import Invalid
from foliot.model.schedule import Schedule, jitter_of, last_ticks, trigger_of
from foliot.triggers.base import Trigger, to_datetime, to_instant

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

    @property
    def trigger(self) -> Trigger:
        return job_trigger(self.schedule, self.id, self.created_at)


@dataclass(frozen=True, slots=True)
class DueJob:
    """What a scheduler needs to know of a job whose time has come."""

    id: UUID
    version: int
    next_at: datetime
    fire_at: datetime
    schedule: Schedule
    created_at: datetime

    @property
    def trigger(self) -> Trigger:
        return job_trigger(self.schedule, self.id, self.created_at)


def job_trigger(schedule: Schedule, job_id: UUID, created_at: datetime) -> Trigger:
    # Jobs that share an expression share one trigger, unless it depends on the job: by H, or by where it counts from.
    seed = str(job_id) if schedule.cron is not None and "H" in schedule.cron.upper() else ""
    anchor = to_instant(created_at) if schedule.every is not None else 0
    return trigger_of(schedule, seed, anchor)


def fire_at(schedule: Schedule, job_id: UUID, tick: int | None) -> datetime | None:
    """When a tick is to fire, jitter and all."""
    return None if tick is None else to_datetime(tick + jitter_of(schedule, job_id, tick))


def scheduled_from(job: RecurringJob, now: datetime) -> RecurringJob:
    """The job with its cursor on the first tick after now."""
    tick = job.trigger.next_after(to_instant(now))
    return replace(job, next_at=None if tick is None else to_datetime(tick), fire_at=fire_at(job.schedule, job.id, tick))


def resumed(job: RecurringJob, now: datetime) -> tuple[RecurringJob, datetime | None, datetime | None]:
    """The job as it goes on from now, and the first and last tick that its pause made it miss."""
    at = to_instant(now)
    missed = [] if job.next_at is None or job.runs_left == 0 else last_ticks(job.trigger, to_instant(job.next_at) - 1, at, 1)
    later = scheduled_from(job, now)
    return later, job.next_at if missed else None, to_datetime(missed[0]) if missed else None


def check_name(name: str) -> None:
    """A name stands in paths beside ids, so it must be one segment of a path, and no id. Raises `Invalid` for what is not."""
    if any(unicodedata.category(character) in NOT_IN_NAMES and character not in JOINERS for character in name):
        raise Invalid("name: must have no control characters", field="name")
    if "/" in name or name in (".", ".."):
        raise Invalid("name: must have no '/' and must not be '.' or '..', which are not found in a path", field="name")
    if name != name.strip():
        raise Invalid("name: must not begin or end with a blank", field="name")
    if _is_uuid(name):
        raise Invalid("name: looks like an id; choose another", field="name")


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
