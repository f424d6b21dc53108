"""Jobs in the words of the distributed-scheduler lab: immediate, delayed, error_message and so on.

A job of the lab runs the task `simulate`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from foliot.api.openapi.schemas import JobCreated, metadata_of, run_name
from foliot.api.requests.pages import PAGE_MAX
from foliot.api.run_filters import FIRST_ID, LAST_ID, LOOK_BACK
from foliot.errors import Invalid
from foliot.model.field_rules import Rule, all_of, any_given, any_of, field_is, given, not_given
from foliot.model.ids import first_id_of, not_finished_before
from foliot.model.job import RecurringJob
from foliot.model.job_request import EARLIEST, LATEST, JobRequest
from foliot.model.namespace import Namespace, bare, namespace_of
from foliot.model.priority import PRIORITY_MAX, PRIORITY_MIN
from foliot.model.run import RunView
from foliot.model.run_request import Retries
from foliot.model.states import TERMINAL, RunState
from foliot.model.text_patterns import CRON, RECURRING_NAME
from foliot.store.run_lists import RunFilter, Span
from foliot.store.store import Store

TASK = "simulate"
JobType = Literal["immediate", "delayed", "recurring"]
Status = Literal["pending", "running", "completed", "failed", "cancelled"]
STATUS: dict[RunState, Status] = {
    RunState.WAITING: "pending",
    RunState.SCHEDULED: "pending",
    RunState.HELD: "pending",
    RunState.READY: "pending",
    RunState.RUNNING: "running",
    RunState.SUCCEEDED: "completed",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "cancelled",
    RunState.SKIPPED: "cancelled",
}


class LabRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=200)]
    job_type: JobType = "immediate"
    payload: dict[str, Any] = {}
    execution_time_ms: Annotated[float, Meta(ge=0, le=86_400_000)] = 1000
    fail_rate: Annotated[float, Meta(ge=0, le=1)] = 0
    delay_seconds: Annotated[float, Meta(ge=0, le=315_360_000)] | None = None
    cron: Annotated[str, Meta(max_length=500, extra_json_schema=CRON)] | None = None
    cron_expression: (
        Annotated[str, Meta(max_length=500, extra_json_schema=CRON, description="Alias of `cron`.")] | None
    ) = None
    max_retries: Retries = 3
    priority: Annotated[int, Meta(ge=PRIORITY_MIN, le=PRIORITY_MAX)] = 0

    RULES: ClassVar[tuple[Rule, ...]] = (
        any_of(
            all_of(field_is("job_type", {"const": "immediate"}), not_given("delay_seconds", "cron", "cron_expression")),
            all_of(
                field_is("job_type", {"const": "delayed"}, required=True),
                given("delay_seconds"),
                not_given("cron", "cron_expression"),
            ),
            all_of(
                field_is("job_type", {"const": "recurring"}, required=True),
                not_given("delay_seconds"),
                any_given("cron", "cron_expression"),
                field_is("name", RECURRING_NAME),
            ),
        ),
    )

    def as_job(self) -> JobRequest:
        """The job in Foliot's terms. Raises `Invalid` for a field that does not fit the type of the job."""
        cron = self.cron if self.cron is not None else self.cron_expression
        for field, value, belongs_to in (("delay_seconds", self.delay_seconds, "delayed"), ("cron", cron, "recurring")):
            if (value is not None) != (self.job_type == belongs_to):
                has = (
                    f"a job of type {belongs_to!r} needs it"
                    if value is None
                    else f"a job of type {self.job_type!r} has none"
                )
                raise Invalid(f"{field}: {has}", field=field)
        simulated = {"execution_time_ms": self.execution_time_ms, "fail_rate": self.fail_rate}
        return JobRequest(
            task=TASK,
            name=self.name,
            payload=simulated | ({"payload": self.payload} if self.payload else {}),
            delay_seconds=self.delay_seconds,
            cron=cron,
            max_retries=self.max_retries,
            priority=self.priority,
            metadata={"job_type": self.job_type},
        )


class LabJob(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str | None
    job_type: JobType
    status: Status
    priority: int
    payload: Any
    max_retries: int
    attempt: int = 0
    worker_id: UUID | None = None
    created_at: datetime
    scheduled_at: datetime | None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    error_message: str | None = None


class LabStats(msgspec.Struct, frozen=True):
    queue_length: int
    active_workers: int
    jobs_by_status: dict[str, int]


class LabWorker(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    status: Literal["active", "draining"]
    current_jobs: int
    slots: int
    started_at: datetime
    last_heartbeat: datetime


async def latest_ids(store: Store, namespace: Namespace, status: str, limit: int) -> list[UUID]:
    """The latest runs that no recurring job made; the runs of recurring jobs are shown with the job."""
    first = first_id_of(await store.jobs.database_now() - LOOK_BACK)
    states = [word for state, named in STATUS.items() if named == status for word in (str(state), f"{state}+")] or None
    span = Span(LAST_ID, FIRST_ID, first, not_finished_before(first))
    page = await store.run_lists.list_runs(
        "all", span, RunFilter(namespace=namespace, states=states), limit=PAGE_MAX, scan=PAGE_MAX * 10
    )
    return [item.id for item in page.items if item.job_id is None][:limit]


def made_view(asked: LabRequest, made: JobCreated) -> LabJob:
    return LabJob(
        id=made.id,
        name=made.name,
        job_type=asked.job_type,
        status="pending",
        priority=made.priority,
        payload=asked.payload,
        max_retries=asked.max_retries,
        created_at=made.created_at,
        scheduled_at=made.scheduled_at,
    )


async def run_view(store: Store, run: RunView) -> LabJob:
    options = run.options or {}
    return LabJob(
        id=run.id,
        name=run_name(run.name, run.job_id),
        job_type="recurring"
        if run.job_id
        else "delayed"
        if metadata_of(options).get("job_type") == "delayed"
        else "immediate",
        status=STATUS[run.state],
        priority=run.priority,
        payload=lab_payload(run.payload),
        max_retries=options.get("retries", 3),
        attempt=run.attempt,
        worker_id=run.worker_id,
        created_at=run.created_at,
        scheduled_at=run.due_at,
        started_at=run.started_at,
        completed_at=run.finished_at,
        error_message=message_of(run.error) if run.state in TERMINAL else await last_message(store, run),
    )


async def recurring_view(store: Store, job: RecurringJob) -> LabJob:
    """A recurring job with its latest run."""
    page = await store.run_lists.list_job_runs(
        job.id, (LATEST, FIRST_ID), EARLIEST, RunFilter(namespace=Namespace(namespace_of(job.queue))), limit=1, scan=2
    )
    last = page.items[0] if page.items else None
    status: Status = "running" if last and last.state is RunState.RUNNING else "pending" if job.next_at else "completed"
    return LabJob(
        id=job.id,
        name=bare(job.name),
        job_type="recurring",
        status=status,
        priority=job.priority,
        payload=lab_payload(job.payload),
        max_retries=(job.options or {}).get("retries", 3),
        attempt=last.attempt if last else 0,
        worker_id=last.worker_id if last else None,
        created_at=job.created_at,
        scheduled_at=job.next_at,
        started_at=last.started_at if last else None,
        completed_at=last.finished_at if last else None,
        error_message=message_of(last.error) if last else None,
    )


async def last_message(store: Store, run: RunView) -> str | None:
    """Why the previous attempt failed."""
    if run.attempt == 0:
        return None
    ended = [attempt for attempt in await store.run_lists.list_attempts(run.id) if attempt.finished_at is not None]
    if not ended:
        return None
    return "the worker was lost" if ended[-1].outcome == "lost" else message_of(ended[-1].error)


def lab_payload(payload: Any) -> Any:
    if isinstance(payload, msgspec.Raw):
        try:
            payload = msgspec.json.decode(payload)
        except (msgspec.DecodeError, RecursionError):
            # Nested too deeply to decode here: shown unchanged.
            return payload
    return payload.get("payload", {}) if isinstance(payload, dict) and "execution_time_ms" in payload else payload or {}


def message_of(error: Any) -> str | None:
    return str(error.get("message")) if isinstance(error, dict) else None
