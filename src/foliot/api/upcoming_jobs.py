"""The recurring jobs that fire within a while, ready for `model/upcoming.py`."""

from __future__ import annotations

from datetime import datetime

from foliot.model.job import job_timetable
from foliot.model.namespace import Namespace
from foliot.model.upcoming import Coming
from foliot.store.attention import DUE_MAX, DueSchedule
from foliot.store.store import Store
from foliot.triggers.base import to_instant


async def upcoming_jobs(
    store: Store, namespace: Namespace, until: datetime, *, queue: str | None = None, tag: str | None = None
) -> tuple[list[tuple[DueSchedule, Coming]], bool]:
    """The jobs that fire before a time, and whether these are all."""
    due = await store.attention.due_schedules(namespace, until)
    wanted = [
        job
        for job in due
        if (queue is None or job.queue == namespace.qualified(queue)) and (tag is None or tag in job.tags)
    ]
    return [(job, _coming(job)) for job in wanted], len(due) < DUE_MAX


def _coming(job: DueSchedule) -> Coming:
    timetable = job_timetable(job.schedule, job.id, to_instant(job.created_at), job.calendar)
    return Coming(job.id, timetable, to_instant(job.next_at), job.schedule.jitter_seconds, job.runs_left)
