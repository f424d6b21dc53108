"""What the API takes and gives, as types. The OpenAPI document is made from them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foliot.errors import Invalid
from foliot.model.asked import AskedRun, Name
from foliot.model.calendar import NamedCalendar
from foliot.model.dedup import Unique
from foliot.model.ids import shard_of
from foliot.model.job import RecurringJob, check_name, scheduled_from
from foliot.model.namespace import Namespace, bare, bare_key
from foliot.model.notice import notification_ids
from foliot.model.run import HeldBy, NewRun, RunView, StoredRun, SubmittedRun
from foliot.model.schedule import MAX_CATCHUP_WINDOW_SECONDS, Catchup, Expressions, Overlap, Schedule, Times
from foliot.model.states import RunState, status_of
from foliot.triggers.base import to_instant
from foliot.triggers.calendar import OnExcluded
from foliot.triggers.cron_fields import CronError
from foliot.triggers.durations import parse_duration
from foliot.triggers.wall import DstFold, DstGap

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)
# The fields of a schedule that a request names as the schedule does.
SCHEDULE_FIELDS = (
    "cron", "every", "times", "timezone", "dst_gap", "dst_fold", "start_at", "end_at", "calendar", "on_excluded", "jitter_seconds",
    "overlap", "catchup", "catchup_max",
)  # fmt: skip
# Stored among the options, which go along with a run; shown beside them.
SHOWN_APART = frozenset({"metadata", "tags", "notifies"})
ONLY_ONE_OFF = ("unique", "expires_at")
ONLY_RECURRING = (*SCHEDULE_FIELDS[3:], "catchup_window", "max_runs")

References = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...], Meta(min_length=1, max_length=1000)]


class JobRequest(AskedRun, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A job to create. `job_type` and `max_retries` are other names of `task` and `retries`."""

    schedule_time: Annotated[datetime, Meta(tz=True, description="ISO 8601 with an offset. In the past: now.")] | None = None
    cron: (
        Annotated[str, Meta(max_length=500, description="A cron expression: makes the job recurring. Several: a list.")]
        | Expressions
        | None
    ) = None
    every: Annotated[str, Meta(max_length=100, description="A period such as `90s` or `5m`: makes the job recurring.")] | None = None
    times: Annotated[Times, Meta(description="Instants at which it is due, alone or beside cron or every.")] | None = None
    schedule: Annotated[str, Meta(max_length=500, description="A cron expression or an ISO 8601 time.")] | None = None
    timezone: Annotated[str, Meta(max_length=100, description="IANA name; UTC by default.")] | UnsetType = UNSET
    dst_gap: DstGap | UnsetType = UNSET
    dst_fold: DstFold | UnsetType = UNSET
    start_at: Annotated[datetime, Meta(tz=True)] | None = None
    end_at: Annotated[datetime, Meta(tz=True)] | None = None
    calendar: Annotated[Name, Meta(description="The name of an exclusion calendar.")] | None = None
    on_excluded: (
        Annotated[OnExcluded, Meta(description="On a day that the calendar excludes: skip, or move to the next other day.")] | UnsetType
    ) = UNSET
    jitter_seconds: Annotated[int, Meta(ge=0, le=86_400)] | UnsetType = UNSET
    overlap: Overlap | UnsetType = UNSET
    catchup: Catchup | UnsetType = UNSET
    catchup_window: Annotated[str, Meta(max_length=100, description="How old a missed tick may be to be caught up.")] | UnsetType = UNSET
    catchup_max: Annotated[int, Meta(ge=1, le=10_000)] | UnsetType = UNSET
    max_runs: Annotated[int, Meta(ge=1, le=9_007_199_254_740_991)] | None = None
    dependencies: Annotated[References, Meta(description="Names or ids of the jobs that it waits for.")] | None = None
    unique: Unique | None = None
    expires_at: Annotated[datetime, Meta(tz=True, description="A run that has not started by then is skipped.")] | None = None
    idempotency_key: Annotated[str, Meta(description="The same answer for a repeated request; or the header Idempotency-Key.")] | None = (
        None
    )

    @property
    def is_recurring(self) -> bool:
        if self.cron is not None or self.every is not None or self.times is not None:
            return True
        return self.schedule is not None and not _is_time(self.schedule)

    def new_job(
        self,
        job_id: UUID,
        *,
        namespace: Namespace,
        queue: str,
        now: datetime,
        calendar: NamedCalendar | None,
        after: tuple[str, ...] | None = None,
    ) -> RecurringJob:
        """The recurring job, with its names as they are stored; `after` names the jobs that it depends on.

        Raises `Invalid` for a schedule that never fires.
        """
        if self.delay_seconds is not None or self.schedule_time is not None:
            field = "delay_seconds" if self.delay_seconds is not None else "schedule_time"
            raise Invalid(f"{field}: a recurring job has none; use start_at", field=field)
        if misplaced := [name for name in ONLY_ONE_OFF if getattr(self, name) is not None]:
            raise Invalid(f"{misplaced[0]}: a recurring job has none; see overlap and end_at", field=misplaced[0])
        if self.signal is not None:
            raise Invalid("signal: a recurring job has none; make it a workflow with a step that waits", field="signal")
        if self.name is not None:
            check_name(self.name)
        job = RecurringJob(
            id=job_id,
            name=namespace.qualified(self.name or f"{self.task_name()[:187]}-{job_id.hex[-12:]}"),
            task=namespace.qualified(self.task_name()),
            queue=namespace.qualified(self.queue or queue),
            priority=self.priority,
            schedule=self._schedule(namespace, after),
            payload=self.payload_tree(),
            options=msgspec.to_builtins(self.run_options(namespace)) or None,
            version=1,
            runs_left=self.max_runs,
            next_at=None,
            fire_at=None,
            paused_at=None,
            paused_until=None,
            paused_reason=None,
            created_at=now,
            updated_at=now,
            shard=shard_of(job_id),
            calendar=calendar.days if calendar else None,
            calendar_version=calendar.version if calendar else None,
        )
        planned = planned_from(job, now, field="cron" if self.schedule is None else "schedule")
        if planned.schedule.has_ticks and planned.timetable.fires.next_after(to_instant(now)) is None:
            field = self._why_never(now)
            raise Invalid(f"{field}: the job would never fire", field=field)
        return planned

    def _why_never(self, now: datetime) -> str:
        if self.end_at is not None:
            return "end_at"
        if self.times is not None and max(self.times) <= now:
            return "times"
        return "calendar" if self.calendar is not None else "start_at"

    def _schedule(self, namespace: Namespace, after: tuple[str, ...] | None) -> Schedule:
        given = [name for name in ("cron", "every", "schedule") if getattr(self, name) is not None]
        if len(given) > 1:
            raise Invalid(f"{given[1]}: give either {given[0]} or {given[1]}", field=given[1])
        given_fields = {name: getattr(self, name) for name in SCHEDULE_FIELDS if getattr(self, name) not in (None, UNSET)}
        if self.schedule is not None:
            given_fields["cron"] = self.schedule
        if self.calendar is not None:
            given_fields["calendar"] = namespace.qualified(self.calendar)
        if self.catchup_window is not UNSET:
            given_fields["catchup_window_seconds"] = self.catchup_window_seconds
        if after and given_fields.get("overlap", "skip") not in ("skip", "allow_all"):
            raise Invalid("overlap: a job with dependencies has skip or allow_all", field="overlap")
        return Schedule(**given_fields, after=after)

    @property
    def catchup_window_seconds(self) -> int:
        window = parse_duration(str(self.catchup_window), field="catchup_window")
        if window > MAX_CATCHUP_WINDOW_SECONDS:
            raise Invalid("catchup_window: must be a year (365d) at most", field="catchup_window")
        return window

    def new_run(self, run_id: UUID, *, namespace: Namespace, queue: str) -> NewRun:
        """The run this job is, with its names as they are stored. Raises `Invalid` for fields that contradict each other."""
        given = [name for name in ("delay_seconds", "schedule_time", "schedule") if getattr(self, name) is not None]
        if len(given) > 1:
            raise Invalid(f"{given[1]}: give either {given[0]} or {given[1]}", field=given[1])
        if misplaced := [name for name in ONLY_RECURRING if getattr(self, name) not in (None, UNSET)]:
            raise Invalid(f"{misplaced[0]}: only a recurring job has one; give cron, every or times too", field=misplaced[0])
        if given and self.signal is not None:
            raise Invalid("signal: what waits for a signal has no instant; let a workflow's step before it wait", field="signal")
        due_at = self.schedule_time if self.schedule is None else _time_of(self.schedule)
        if due_at is not None and due_at >= LATEST:
            raise Invalid(f"{given[0]}: must be before the year {LATEST.year}", field=given[0])
        if self.expires_at is not None and not (due_at or EARLIEST) < self.expires_at < LATEST:
            raise Invalid(f"expires_at: must be after the job is due and before the year {LATEST.year}", field="expires_at")
        return NewRun(
            id=run_id,
            task=namespace.qualified(self.task_name()),
            queue=namespace.qualified(self.queue or queue),
            name=self.name,
            priority=self.priority,
            # The past is now, however far back; the first day of the first year has no instant in UTC east of Greenwich.
            due_at=due_at and max(due_at, EARLIEST),
            delay_seconds=self.delay_seconds,
            payload=self.payload_text(),
            options=self.options_text(namespace),
            unique_key=namespace.qualified_key(self.unique.key) if self.unique else None,
            on_conflict=self.unique.on_conflict if self.unique else "return_existing",
            expires_at=self.expires_at,
        )


def planned_from(job: RecurringJob, now: datetime, *, field: str = "cron") -> RecurringJob:
    """`scheduled_from`, but the field at fault is that of the request; that of the expression stays in the words."""
    try:
        return scheduled_from(job, now)
    except CronError as error:
        raise CronError(f"{field}: {error.detail}", field=field, start=error.start, end=error.end) from None


class JobCreated(msgspec.Struct, frozen=True):
    id: UUID
    name: str | None
    status: str
    state: str
    task: str
    queue: str
    priority: int
    scheduled_at: datetime
    created_at: datetime
    created: bool


class BatchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One-off jobs, all of which are stored, or none."""

    jobs: list[JobRequest]
    idempotency_key: str | None = None


class BatchCreated(msgspec.Struct, frozen=True):
    items: list[JobCreated]
    """In the order of the request."""
    created: bool


class JobShown(msgspec.Struct, frozen=True):
    id: UUID
    name: str | None
    status: str
    state: str
    reason: str | None
    task: str
    queue: str
    priority: int
    attempt: int
    worker_id: UUID | None
    created_at: datetime
    scheduled_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    payload: Any
    options: Any
    metadata: Any
    tags: list[str]
    result: Any
    error: Any
    output: str | None
    job_id: UUID | None
    tick_at: datetime | None
    rerun_of: UUID | None
    rerun_as: UUID | None
    parent_id: UUID | None
    step: str | None
    upstream: list[UUID]
    progress: Any
    cancel_requested: Any
    unique_key: str | None
    """The key that no other run can have while this one is live; null once it has ended."""
    expires_at: datetime | None
    """Of a live run: the instant from which on it will not be started."""
    notifications: list[UUID]
    """The runs that tell of its end to those who asked for it by `notify`."""
    notifies: UUID | None
    """The run of whose end this one tells."""
    held_by: HeldBy | None
    """Of a held run, what it waits for: a limit of its keys, the run before it, the end of its task's pause, its circuit, a worker."""


class RecurringShown(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    status: str
    task: str
    queue: str
    priority: int
    schedule: Any
    payload: Any
    options: Any
    metadata: Any
    tags: list[str]
    version: int
    runs_left: int | None
    next_at: datetime | None
    paused_reason: str | None
    paused_until: datetime | None
    created_at: datetime
    updated_at: datetime
    created: bool = False


def recurring(job: RecurringJob, *, created: bool = False) -> RecurringShown:
    return RecurringShown(
        id=job.id,
        name=bare(job.name),
        status="paused" if job.paused_at else "active" if job.fire_at or _awaits_others(job) else "ended",
        task=bare(job.task),
        queue=bare(job.queue),
        priority=job.priority,
        schedule=schedule_shown(job.schedule),
        payload=job.payload or {},
        options=options_shown(job.options),
        metadata=metadata_of(job.options),
        tags=tags_of(job.options),
        version=job.version,
        runs_left=job.runs_left,
        next_at=job.next_at if job.fire_at else None,
        paused_reason=job.paused_reason,
        paused_until=job.paused_until,
        created_at=job.created_at,
        updated_at=job.updated_at,
        created=created,
    )


def _awaits_others(job: RecurringJob) -> bool:
    return not job.schedule.has_ticks and job.runs_left != 0


class PauseRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=1000)] | None = None
    until: Annotated[datetime, Meta(tz=True)] | None = None


class BackfillRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"start": "from", "end": "to"}):
    """Runs the ticks from one instant to another, both included. `dry_run` only says which."""

    start: Annotated[datetime, Meta(tz=True)]
    end: Annotated[datetime, Meta(tz=True)]
    dry_run: bool = False
    overlap: Literal["buffer_all", "allow_all"] = "buffer_all"


def created(run: NewRun, stored: StoredRun) -> JobCreated:
    return JobCreated(
        id=run.id,
        name=run.name,
        status=status_of(stored.state, 0),
        state=stored.state,
        task=bare(run.task),
        queue=bare(run.queue),
        priority=run.priority,
        scheduled_at=stored.due_at,
        created_at=stored.created_at,
        created=True,
    )


def submitted(run: SubmittedRun) -> JobCreated:
    return JobCreated(
        id=run.id,
        name=run.name,
        status=status_of(run.state, run.attempt),
        state=run.state,
        task=bare(run.task),
        queue=bare(run.queue),
        priority=run.priority,
        scheduled_at=run.due_at,
        created_at=run.created_at,
        created=run.is_new,
    )


def shown(run: RunView) -> JobShown:
    return JobShown(
        id=run.id,
        name=run_name(run.name, run.job_id),
        status=status_of(run.state, run.attempt) if run.total is None else "running",
        state=run.state,
        reason=run.reason,
        task=bare(run.task),
        queue=bare(run.queue),
        priority=run.priority,
        attempt=run.attempt,
        worker_id=run.worker_id,
        created_at=run.created_at,
        scheduled_at=run.due_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        payload=run.payload,
        options=options_shown(run.options),
        metadata=metadata_of(run.options),
        tags=tags_of(run.options),
        result=run.result,
        error=run.error,
        output=None if run.output is None else run.output.decode("utf-8", "replace"),
        job_id=run.job_id,
        tick_at=run.tick_at,
        rerun_of=run.rerun_of,
        rerun_as=run.rerun_as,
        parent_id=run.parent_id,
        step=run.step,
        upstream=run.upstream or [],
        progress=progress_of(run),
        cancel_requested=run.cancel,
        unique_key=None if run.unique_key is None else bare_key(run.unique_key),
        expires_at=run.expires_at,
        notifications=notification_ids(run.id, run.options, run.state, run.reason, run.finished_at),
        notifies=run.options.get("notifies") if isinstance(run.options, dict) else None,
        held_by=run.held_by,
    )


def metadata_of(options: Any) -> Any:
    """Stored among the options, which go from a job to its runs and into history; shown beside them."""
    return options.get("metadata", {}) if isinstance(options, dict) else {}


def tags_of(options: Any) -> list[str]:
    return options.get("tags", []) if isinstance(options, dict) else []


def options_shown(options: Any) -> Any:
    """Without what is shown beside them, and with keys as their users know them."""
    if not isinstance(options, dict):
        return options
    shown = {name: value for name, value in options.items() if name not in SHOWN_APART}
    for name in shown.keys() & {"concurrency", "rate"}:
        shown[name] = {**shown[name], "key": bare_key(shown[name]["key"])}
    if "fairness_key" in shown:
        shown["fairness_key"] = bare_key(shown["fairness_key"])
    return shown or None


def schedule_shown(schedule: Schedule) -> Any:
    calendar, after = schedule.calendar, schedule.after
    return msgspec.to_builtins(
        msgspec.structs.replace(
            schedule, calendar=calendar and bare(calendar), after=None if after is None else tuple(bare(name) for name in after)
        )
    )


def run_name(name: str | None, job_id: UUID | None) -> str | None:
    """A run of a recurring job has the job's name, as that is stored; any other has the name that it was given."""
    return name if name is None or job_id is None else bare(name)


def progress_of(run: RunView) -> Any:
    """What its attempt said last; or, of one that is made of others, how many of them have ended."""
    if run.total is not None and run.unfinished is not None:
        done = run.total - run.unfinished
        return {"share": done / max(1, run.total), "message": f"{done} of {run.total}", "total": run.total, "done": done}
    said = run.progress if run.state is RunState.RUNNING else None
    return said if said and said.get("attempt") == run.attempt else None


def _is_time(text: str) -> bool:
    """`schedule` holds a cron expression or an ISO time; no cron field begins like a year and a month."""
    return re.match(r"\d{4}-\d{2}", text.strip()) is not None


def _time_of(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Invalid(f"schedule: {text!r} is not an ISO 8601 time", field="schedule") from None
    if moment.tzinfo is None:
        raise Invalid(f"schedule: {text!r} has no offset; write it like 2026-12-31T23:59:59Z", field="schedule")
    return moment
