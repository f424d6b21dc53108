"""Recurring jobs for tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from foliot.model.calendar import CalendarDays, Weekday
from foliot.model.ids import new_id, shard_of
from foliot.model.job import RecurringJob, scheduled_from
from foliot.model.schedule import Schedule
from foliot.store.store import Store


async def make_job(
    store: Store,
    *,
    name: str | None = None,
    task: str = "t",
    now: datetime | None = None,
    calendar_days: Sequence[Weekday] | None = None,
    **schedule: Any,
) -> RecurringJob:
    """A recurring job, stored. Its first tick is after `now`, by default the database's."""
    job_id, at = new_id(), now or await store.jobs.database_now()
    job = RecurringJob(
        id=job_id,
        name=name or job_id.hex,
        task=task,
        queue="default",
        priority=0,
        schedule=Schedule(**schedule),
        payload=None,
        options=None,
        version=1,
        runs_left=None,
        next_at=None,
        fire_at=None,
        paused_at=None,
        paused_until=None,
        paused_reason=None,
        created_at=at,
        updated_at=at,
        shard=shard_of(job_id),
        calendar_version=1,
        calendar=CalendarDays(weekdays=tuple(calendar_days)) if calendar_days else None,
    )
    planned = scheduled_from(job, at)
    assert await store.jobs.insert_job(planned)
    return planned
