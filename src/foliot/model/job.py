"""A recurring job, as it is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from foliot.model.schedule import Schedule, jitter_of, last_ticks, trigger_of
from foliot.triggers.base import Trigger, to_datetime, to_instant


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
    missed = [] if job.next_at is None else last_ticks(job.trigger, to_instant(job.next_at) - 1, at, 1)
    later = scheduled_from(job, now)
    return later, job.next_at if missed else None, to_datetime(missed[0]) if missed else None
