"""Creates the recurring jobs that an app declares with `@app.task(cron=...)`, or updates them to match the code.

Any number of workers may do this at once: a job that already matches is left alone, and an update is fenced by the
job's version. The code decides only the schedule and the queue; a paused job stays paused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from foliot.events import EventBus, JobDeclared, JobNotDeclared
from foliot.model.ids import new_id, shard_of
from foliot.model.job import RecurringJob, resumed, scheduled_from
from foliot.model.namespace import Namespace
from foliot.model.schedule import Schedule
from foliot.store.hints import JOBS_TOPIC
from foliot.store.lookup import find_job
from foliot.store.store import Store

# A job that fires every second may fire between the read and the write.
ATTEMPTS = 10


class DeclaredJob(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The recurring job that a task declares. Names are bare."""

    name: str
    """Of the task and the job."""
    queue: str
    schedule: Schedule
    tags: tuple[str, ...] = ()


async def declare_jobs(
    declared: Sequence[DeclaredJob], *, store: Store, events: EventBus, namespace: Namespace
) -> None:
    for task in declared:
        await _declare(task, _qualified(task.schedule, namespace), store=store, events=events, namespace=namespace)


async def _declare(
    task: DeclaredJob, schedule: Schedule, *, store: Store, events: EventBus, namespace: Namespace
) -> None:
    name, queue = namespace.qualified(task.name), namespace.qualified(task.queue)
    for _ in range(ATTEMPTS):
        job = await find_job(store, namespace, None, task.name)
        if job is not None and job.task != name:
            events.emit(JobNotDeclared(task.name, f"a job of that name exists for the task {job.task!r}"))
            return
        if job is not None and (job.schedule, job.queue) == (schedule, queue):
            return
        if await (_create(task, name, queue, schedule, store) if job is None else _update(job, queue, schedule, store)):
            store.hints.send([JOBS_TOPIC])
            events.emit(JobDeclared(task.name, is_new=job is None))
            return
    events.emit(JobNotDeclared(task.name, f"others changed the job during each of {ATTEMPTS} attempts"))


def _qualified(schedule: Schedule, namespace: Namespace) -> Schedule:
    return (
        schedule
        if schedule.calendar is None
        else msgspec.structs.replace(schedule, calendar=namespace.qualified(schedule.calendar))
    )


async def _create(task: DeclaredJob, name: str, queue: str, schedule: Schedule, store: Store) -> bool:
    job_id, now = new_id(), await store.jobs.database_now()
    job = RecurringJob(
        id=job_id,
        name=name,
        task=name,
        queue=queue,
        priority=0,
        schedule=schedule,
        payload=None,
        options={"tags": list(task.tags)} if task.tags else None,
        version=1,
        runs_left=None,
        next_at=None,
        fire_at=None,
        paused_at=None,
        paused_until=None,
        paused_reason=None,
        created_at=now,
        updated_at=now,
        shard=shard_of(job_id),
    )
    return await store.jobs.insert_job(scheduled_from(job, now))


async def _update(job: RecurringJob, queue: str, schedule: Schedule, store: Store) -> bool:
    now = await store.jobs.database_now()
    unchanged, first_missed, last_missed = resumed(job, now)
    changed = replace(job, schedule=schedule, queue=queue, next_at=None, calendar=None, calendar_version=None)
    version = await store.jobs.change_job(
        job, scheduled_from(changed, now), first_missed, last_missed, unchanged.next_at
    )
    return version is not None
