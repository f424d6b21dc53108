"""Request and response types that several routes share. The OpenAPI document is made from them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from foliot.api.requests.traces import NO_LINKS, TraceLinks
from foliot.model.field_rules import all_of, field_is, not_given
from foliot.model.idempotency import IdempotencyKey
from foliot.model.job import RecurringJob
from foliot.model.job_request import ONLY_RECURRING, JobRequest
from foliot.model.namespace import bare, bare_key
from foliot.model.notification import notification_ids
from foliot.model.run import HeldBy, NewRun, RunView, StoredRun, SubmittedRun
from foliot.model.schedule import Schedule
from foliot.model.schedule_words import in_words
from foliot.model.states import RunState, status_of
from foliot.model.text_patterns import TIME
from foliot.model.tick import Origin, tick_from, tick_of

# Stored among the options of a run, but shown as fields of their own, or of use to workers only.
SHOWN_APART = frozenset({"metadata", "tags", "notifies", "tick", "item", "traceparent"})


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


class JobChecked(msgspec.Struct, frozen=True):
    """A job that has been checked but not stored."""

    name: str | None
    task: str
    queue: str
    priority: int
    payload: Any
    tags: list[str]
    is_recurring: bool


BATCH_MAX = 10_000
# A batch holds one-off jobs, and shares one idempotency key.
BatchJob = Annotated[
    JobRequest,
    Meta(
        extra_json_schema={
            "allOf": [
                all_of(
                    not_given("cron", "every", "times", *ONLY_RECURRING, "dependencies", "idempotency_key"),
                    field_is("schedule", TIME),
                )
            ]
        }
    ),
]
BatchJobs = Annotated[list[BatchJob], Meta(extra_json_schema={"minItems": 1, "maxItems": BATCH_MAX})]


class BatchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One-off jobs. Either all of them are stored, or none."""

    jobs: BatchJobs
    idempotency_key: IdempotencyKey | None = None


class BatchCreated(msgspec.Struct, frozen=True):
    items: list[JobCreated]
    """In the order of the request."""
    created: bool


class TickShown(msgspec.Struct, frozen=True):
    """The tick of a schedule that a run is for. Times have the offset of the time zone of the job."""

    at: datetime
    previous: datetime | None
    next: datetime | None
    timezone: str
    job: str
    job_id: UUID
    origin: Origin
    """schedule: it fired. backfill: it was run afterwards. trigger: the job was triggered by hand at that time."""


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
    tick: TickShown | None
    rerun_of: UUID | None
    rerun_as: UUID | None
    parent_id: UUID | None
    step: str | None
    upstream: list[UUID]
    progress: Any
    cancel_requested: Any
    unique_key: str | None
    """The key that no other live run can have. Null once the run has ended."""
    expires_at: datetime | None
    """A live run is not started after this time."""
    notifications: list[UUID]
    """The runs that deliver the notifications requested by `notify`."""
    notifies: UUID | None
    """The run whose end this run notifies about."""
    held_by: HeldBy | None
    """The reason why a run is held: a limit, the previous run of its job, a signal, a pause, an open circuit, or no
    worker."""
    awaits: Any
    """Of a durable function that waits without a slot: `until` a time, for `signals`, or for called runs (`children`).
    The first of them wakes it."""
    trace_id: str | None
    """Null if traces are off and the submitter named none."""
    trace_url: str | None
    """The address of the trace, by the setting `trace_url_template`."""


class RecurringShown(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    status: str
    task: str
    queue: str
    priority: int
    schedule: Any
    schedule_words: str
    """The schedule in words, without its time zone."""
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
    schedule = bare_schedule(job.schedule)
    return RecurringShown(
        id=job.id,
        name=bare(job.name),
        status="paused" if job.paused_at else "active" if job.fire_at or _awaits_others(job) else "ended",
        task=bare(job.task),
        queue=bare(job.queue),
        priority=job.priority,
        schedule=msgspec.to_builtins(schedule),
        schedule_words=in_words(schedule, str(job.id)),
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
    until: Annotated[datetime, Meta(tz=True, description="Must lie in the future.")] | None = None


class BackfillRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"start": "from", "end": "to"}):
    """Runs the ticks between two times, both included. `dry_run` only lists them."""

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


def shown(run: RunView, traces: TraceLinks = NO_LINKS) -> JobShown:
    trace_id, trace_url = traces.of_run(run.id, run.options)
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
        tick=tick_shown(run.options),
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
        awaits=run.awaits,
        trace_id=trace_id,
        trace_url=trace_url,
    )


def tick_shown(options: Any) -> TickShown | None:
    stored = tick_of(options)
    if stored is None:
        return None
    tick = tick_from(stored)
    return TickShown(tick.at, tick.previous, tick.next, tick.timezone, tick.job, tick.job_id, tick.origin)


def metadata_of(options: Any) -> Any:
    """The metadata, which is stored among the options."""
    return options.get("metadata", {}) if isinstance(options, dict) else {}


def tags_of(options: Any) -> list[str]:
    return options.get("tags", []) if isinstance(options, dict) else []


def options_shown(options: Any) -> Any:
    """The options without the fields shown elsewhere, and with keys without their namespace."""
    if not isinstance(options, dict):
        return options
    shown = {name: value for name, value in options.items() if name not in SHOWN_APART}
    for name in shown.keys() & {"concurrency", "rate"}:
        shown[name] = {**shown[name], "key": bare_key(shown[name]["key"])}
    if "fairness_key" in shown:
        shown["fairness_key"] = bare_key(shown["fairness_key"])
    return shown or None


def bare_schedule(schedule: Schedule) -> Schedule:
    """With names as users write them."""
    calendar, after = schedule.calendar, schedule.after
    return msgspec.structs.replace(
        schedule,
        calendar=calendar and bare(calendar),
        after=None if after is None else tuple(bare(name) for name in after),
    )


def run_name(name: str | None, job_id: UUID | None) -> str | None:
    """The name of a run, without the namespace that the name of a recurring job carries."""
    return name if name is None or job_id is None else bare(name)


def progress_of(run: RunView) -> Any:
    """The last progress report of the attempt; for a workflow or map, the share of finished children."""
    if run.total is not None and run.unfinished is not None:
        done = run.total - run.unfinished
        return {
            "share": done / max(1, run.total),
            "message": f"{done} of {run.total}",
            "total": run.total,
            "done": done,
        }
    said = run.progress if run.state is RunState.RUNNING else None
    return said if said and said.get("attempt") == run.attempt else None
