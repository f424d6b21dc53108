"""Changes to a recurring job, by the rules that hold for a new one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from msgspec import UNSET

from foliot.errors import Invalid
from foliot.model.calendar import NamedCalendar
from foliot.model.job import RecurringJob, resumed
from foliot.model.job_request import SCHEDULE_FIELDS, JobRequest, check_times, cron_is_over, planned_from
from foliot.model.namespace import Namespace, bare
from foliot.model.payloads import WORKFLOW_TASK, pointing
from foliot.model.schedule import from_cron
from foliot.model.templates import Names
from foliot.model.workflow import check_payload
from foliot.store.hints import JOBS_TOPIC
from foliot.store.store import Store
from foliot.submission.admission import Admission
from foliot.submission.calendars import find_calendar

OPTION_FIELDS = frozenset(
    {
        "retries",
        "max_retries",
        "timeout_seconds",
        "backoff",
        "retry_on",
        "never_on",
        "max_snoozes",
        "concurrency",
        "rate",
        "fairness_key",
        "guarantee",
        "metadata",
        "tags",
        "notify",
        "templates",
    }
)
CHANGEABLE = frozenset(SCHEDULE_FIELDS) | OPTION_FIELDS | {"catchup_window", "max_runs", "priority", "queue", "payload"}


class JobChanges:
    def __init__(self, *, store: Store, admission: Admission) -> None:
        self._store = store
        self._admission = admission

    async def apply(
        self, namespace: Namespace, job: RecurringJob, asked: JobRequest, given: set[str], actor: str
    ) -> bool:
        """Changes the fields in `given` to those of `asked`. False when the job has changed or fired since it was
        read. Raises `Invalid` as a new job would."""
        asked = await self._complete(namespace, job, asked, given)
        now = await self._store.jobs.database_now()
        unchanged, first_missed, last_missed = resumed(job, now)
        calendar = await find_calendar(self._store, namespace, asked.calendar) if "calendar" in given else None
        changed = planned_from(apply_change(job, asked, given, calendar, namespace), now)
        if asked.cron is not None and asked.times is None and cron_is_over(changed.schedule, now):
            raise Invalid("cron: the job would never fire: its years are past", field="cron")
        version = await self._store.jobs.change_job(
            job, changed, first_missed, last_missed, unchanged.next_at, actor=actor
        )
        if version is None:
            return False
        self._store.hints.send([JOBS_TOPIC])
        return True

    async def _complete(
        self, namespace: Namespace, job: RecurringJob, asked: JobRequest, given: set[str]
    ) -> JobRequest:
        task = bare(job.task)
        if "payload" in given and task == WORKFLOW_TASK:
            payload = await self._admission.definitions.of_payload(namespace, asked.payload, has_tick=True)
            asked = msgspec.structs.replace(asked, payload=payload)
        elif given & {"payload", "templates"}:
            tree = asked.payload if "payload" in given else decoded(job.payload)
            templates = asked.templates if "templates" in given else (job.options or {}).get("templates")
            unknown = pointing(tree) if job.schedule.after else set[str]()
            check_payload(task, tree, unknown=unknown, templates=templates, names=names_of(job))
            if "payload" in given:
                has_upstream = bool(job.schedule.after)
                await self._admission.payloads.check(namespace, task, asked.payload, has_upstream=has_upstream)
        if "tags" in given and asked.tags is None:
            tags = await self._admission.known_tasks.tags_of(namespace, task)
            asked = msgspec.structs.replace(asked, tags=tags)
        return asked


def names_of(job: RecurringJob) -> Names:
    """Returns the names that placeholders may use. Only a job that depends on others has results to read."""
    return Names(has_tick=True, steps=None if job.schedule.after else ())


def decoded(payload: Any) -> Any:
    return msgspec.json.decode(payload) if isinstance(payload, msgspec.Raw) else payload


def apply_change(
    job: RecurringJob, asked: JobRequest, given: set[str], calendar: NamedCalendar | None, namespace: Namespace
) -> RecurringJob:
    """The job with the given fields changed, and nothing else."""
    schedule = msgspec.structs.asdict(job.schedule)
    for name in given.intersection(SCHEDULE_FIELDS):
        schedule[name] = getattr(asked, name)
    if "catchup_window" in given:
        schedule["catchup_window_seconds"] = asked.catchup_window_seconds
    if "calendar" in given:
        schedule["calendar"] = calendar.name if calendar else None
        job = replace(
            job, calendar=calendar.days if calendar else None, calendar_version=calendar.version if calendar else None
        )
    if given.intersection(SCHEDULE_FIELDS):
        # A new schedule starts now; a tick that the old one had postponed is dropped.
        job = replace(job, next_at=None)
    if asked.cron is not None and asked.every is not None:
        raise Invalid("cron: give either cron or every", field="cron")
    check_times(asked.times)
    if "cron" in given and asked.cron is not None:
        schedule["every"] = None
        schedule |= from_cron(asked.cron, asked.timezone if asked.timezone is not UNSET else None)
    if "every" in given and asked.every is not None:
        schedule["cron"] = None
    return replace(
        job,
        schedule=msgspec.convert(schedule, type(job.schedule)),
        priority=asked.priority if "priority" in given else job.priority,
        queue=namespace.qualified(asked.queue) if asked.queue else job.queue,
        payload=asked.payload if "payload" in given else job.payload,
        options=changed_options(job, asked, given, namespace),
        runs_left=asked.max_runs if "max_runs" in given else job.runs_left,
    )


def changed_options(
    job: RecurringJob, asked: JobRequest, given: set[str], namespace: Namespace
) -> dict[str, object] | None:
    """The job's options with the given fields changed. A field given as null falls back to the task's default."""
    options = dict(job.options or {})
    wanted = msgspec.to_builtins(asked.run_options(namespace))
    for name in {"retries" if field == "max_retries" else field for field in given & OPTION_FIELDS}:
        options.pop(name, None)
        if name in wanted:
            options[name] = wanted[name]
    return options or None
