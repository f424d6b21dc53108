"""What the API takes and gives, as types. The OpenAPI document is made from them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from foliot.errors import Invalid
from foliot.model.priority import PRIORITY_MAX, PRIORITY_MIN
from foliot.model.retry import Backoff
from foliot.model.run import MAX_RETRIES, MAX_TIMEOUT_SECONDS, NewRun, RunOptions, RunView, StoredRun
from foliot.model.states import RunState

NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$"
MAX_DELAY_SECONDS = 315_360_000
LATEST = datetime(2200, 1, 1, tzinfo=UTC)

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=NAME)]
Retries = Annotated[int, Meta(ge=0, le=MAX_RETRIES)]


class JobRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job to create. `job_type` and `max_retries` are other names of `task` and `retries`."""

    task: Name | None = None
    job_type: Name | None = None
    command: Annotated[str, Meta(min_length=1, max_length=100_000, description="A shell command line; implies task `shell`.")] | None = None
    payload: Annotated[dict[str, Any], Meta(description="What the task gets: its keyword arguments.")] | None = None
    name: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    delay_seconds: Annotated[float, Meta(ge=0, le=MAX_DELAY_SECONDS)] | None = None
    schedule_time: Annotated[datetime, Meta(tz=True, description="ISO 8601 with an offset. In the past: now.")] | None = None
    queue: Name | None = None
    priority: Annotated[int, Meta(ge=PRIORITY_MIN, le=PRIORITY_MAX, description="Higher first.")] = 0
    retries: Retries | None = None
    max_retries: Retries | None = None
    timeout_seconds: Annotated[float, Meta(gt=0, le=MAX_TIMEOUT_SECONDS)] | None = None
    backoff: Backoff | None = None

    def task_name(self) -> str:
        named = [name for name in (self.task, self.job_type, "shell" if self.command is not None else None) if name]
        if not named:
            raise Invalid("task: say what to run: a task's name, or a command", field="task")
        if len(set(named)) > 1:
            raise Invalid(f"task: {' and '.join(map(repr, named))} name different tasks; give one", field="task")
        return named[0]

    def new_run(self, run_id: UUID, *, queue: str) -> NewRun:
        """The run this job is. Raises `Invalid` for fields that contradict each other."""
        if self.delay_seconds is not None and self.schedule_time is not None:
            raise Invalid("schedule_time: give either delay_seconds or schedule_time", field="schedule_time")
        if self.schedule_time is not None and self.schedule_time >= LATEST:
            raise Invalid(f"schedule_time: must be before the year {LATEST.year}", field="schedule_time")
        return NewRun(
            id=run_id,
            task=self.task_name(),
            queue=self.queue or queue,
            name=self.name,
            priority=self.priority,
            due_at=self.schedule_time,
            delay_seconds=self.delay_seconds,
            payload=self._payload(),
            options=self._options(),
        )

    def _payload(self) -> str | None:
        payload = self.payload
        if self.command is not None:
            if payload:
                raise Invalid("payload: a command has no payload", field="payload")
            payload = {"command": self.command}
        return msgspec.json.encode(payload).decode() if payload else None

    def _options(self) -> str | None:
        if self.retries is not None and self.max_retries is not None:
            raise Invalid("max_retries: is another name of retries; give one", field="max_retries")
        retries = self.max_retries if self.retries is None else self.retries
        options = RunOptions(retries=retries, timeout_seconds=self.timeout_seconds, backoff=self.backoff)
        return None if options == RunOptions() else msgspec.json.encode(options).decode()


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
    result: Any
    error: Any
    output: str | None


def created(run: NewRun, stored: StoredRun) -> JobCreated:
    return JobCreated(
        id=run.id,
        name=run.name,
        status=status_of(stored.state, 0),
        state=stored.state,
        task=run.task,
        queue=run.queue,
        priority=run.priority,
        scheduled_at=stored.due_at,
        created_at=stored.created_at,
        created=True,
    )


def shown(run: RunView) -> JobShown:
    return JobShown(
        id=run.id,
        name=run.name,
        status=status_of(run.state, run.attempt),
        state=run.state,
        reason=run.reason,
        task=run.task,
        queue=run.queue,
        priority=run.priority,
        attempt=run.attempt,
        worker_id=run.worker_id,
        created_at=run.created_at,
        scheduled_at=run.due_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        payload=run.payload,
        options=run.options,
        result=run.result,
        error=run.error,
        output=None if run.output is None else run.output.decode("utf-8", "replace"),
    )


def status_of(state: RunState, attempt: int) -> str:
    """The outside word for a state."""
    match state:
        case RunState.WAITING | RunState.HELD:
            return "pending"
        case RunState.READY:
            return "retrying" if attempt else "pending"
        case RunState.SCHEDULED:
            return "retrying" if attempt else "scheduled"
        case RunState.SUCCEEDED:
            return "completed"
        case RunState.RUNNING | RunState.FAILED | RunState.CANCELLED | RunState.SKIPPED:
            return str(state)
