"""Restores a version of a recurring job, by the rules that hold for a new job. A deleted job comes back under its id,
so that its runs and ticks belong to it again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from foliot.errors import Conflict, Invalid
from foliot.model.ids import shard_of
from foliot.model.job import RecurringJob, resumed
from foliot.model.job_request import cron_is_over, planned_from
from foliot.model.namespace import Namespace, bare
from foliot.model.payloads import WORKFLOW_TASK
from foliot.store.hints import JOBS_TOPIC
from foliot.store.job_versions import JobVersion
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.submission.admission import Admission
from foliot.submission.calendars import find_calendar
from foliot.submission.dependencies import find_dependencies
from foliot.submission.job_changes import decoded


class JobRestoring:
    def __init__(self, *, store: Store, admission: Admission) -> None:
        self._store = store
        self._admission = admission

    async def restore(self, namespace: Namespace, job: RecurringJob, version: JobVersion, actor: str) -> bool:
        """Makes the definition of a version current, as a new version. False when the job has changed or fired since it
        was read. Raises `Invalid` as a new job would."""
        now = await self._store.jobs.database_now()
        unchanged, first_missed, last_missed = resumed(job, now)
        restored = await self._defined(namespace, job, version)
        if version.schedule != job.schedule:
            # A tick that the other schedule had postponed is dropped.
            restored = replace(restored, next_at=None)
        changed = _planned(restored, now)
        stored = await self._store.jobs.change_job(
            job, changed, first_missed, last_missed, unchanged.next_at, actor=actor
        )
        self._store.hints.send([JOBS_TOPIC])
        return stored is not None

    async def recreate(self, namespace: Namespace, last: JobVersion, version: JobVersion, actor: str) -> None:
        """Makes a deleted job again from one of its versions. Raises `Conflict` if its name is taken, and `Invalid` as
        a new job would."""
        now = await self._store.jobs.database_now()
        empty = RecurringJob(
            id=last.job_id,
            name=last.name,
            task=version.task,
            queue=version.queue,
            priority=version.priority,
            schedule=version.schedule,
            payload=None,
            options=None,
            version=last.number + 1,
            runs_left=last.runs_left,
            next_at=None,
            fire_at=None,
            paused_at=None,
            paused_until=None,
            paused_reason=None,
            created_at=now,
            updated_at=now,
            shard=shard_of(last.job_id),
        )
        job = _planned(await self._defined(namespace, empty, version), now)
        if job.runs_left == 0:
            job = replace(job, fire_at=None)
        after = [bare(name) for name in job.schedule.after or ()]
        upstream = await find_dependencies(self._store, namespace, after)

        async def work(within: Transaction) -> None:
            if not await self._store.jobs.insert_job(job, actor=actor, within=within):
                raise Conflict(f"name: there is a job named {bare(job.name)!r} already")
            if upstream.jobs:
                ids = [other.id for other in upstream.jobs]
                await self._store.job_dependencies.insert_job_dependencies(job, ids, within=within)

        await self._store.database.in_transaction("restore_job", work)
        self._store.hints.send([JOBS_TOPIC])

    async def _defined(self, namespace: Namespace, job: RecurringJob, version: JobVersion) -> RecurringJob:
        """The job with the definition of a version."""
        named = version.schedule.calendar
        calendar = await find_calendar(self._store, namespace, None if named is None else bare(named))
        task = bare(job.task)
        if version.payload is not None and task != WORKFLOW_TASK:
            has_upstream = bool(version.schedule.after)
            await self._admission.payloads.check(namespace, task, decoded(version.payload), has_upstream=has_upstream)
        return replace(
            job,
            schedule=version.schedule,
            priority=version.priority,
            queue=version.queue,
            payload=version.payload,
            options=version.options,
            calendar=None if calendar is None else calendar.days,
            calendar_version=None if calendar is None else calendar.version,
        )


def _planned(job: RecurringJob, now: datetime) -> RecurringJob:
    planned = planned_from(job, now)
    if planned.schedule.cron is not None and planned.schedule.times is None and cron_is_over(planned.schedule, now):
        raise Invalid("version: the job would never fire: the years of its expression are past", field="version")
    return planned
