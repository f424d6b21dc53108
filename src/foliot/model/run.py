"""A run as it is submitted, as a worker holds it, and as it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from foliot.model.backoff import Backoff
from foliot.model.concurrency import Concurrency
from foliot.model.conditions import Condition
from foliot.model.guarantee import Guarantee
from foliot.model.keys import Key
from foliot.model.notification import Notification
from foliot.model.rate_limit import RateLimit
from foliot.model.retry import Causes
from foliot.model.states import RunState
from foliot.model.tick import StoredTick
from foliot.model.tracing import Traceparent
from foliot.model.unique import OnConflict
from foliot.validation_errors import form

HeldBy = Literal["limit", "overlap", "signal", "condition", "pause", "circuit", "no_worker"]
MAX_RETRIES = 1000
MAX_TIMEOUT_SECONDS = 31_536_000
MAX_SNOOZES = 1_000_000
DEFAULT_MAX_SNOOZES = 1000
TAGS_MAX = 20

# No blanks and no commas, so that several can be written in a row. Written out, because what `\s` is depends on who
# reads the pattern.
TAG = form(
    r"^[^\x00\x09-\x0d\x1c-\x20,\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+$(?!\n)",
    "have no spaces and no commas",
)
Tag = Annotated[str, Meta(min_length=1, max_length=64, pattern=TAG)]
Tags = Annotated[tuple[Tag, ...], Meta(max_length=TAGS_MAX)]


class Signal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The run starts only after a signal. If it does not come in time, the run fails or continues without it."""

    timeout_seconds: Annotated[float, Meta(gt=0, le=MAX_TIMEOUT_SECONDS)] | None = None
    on_timeout: Literal["fail", "continue"] = "fail"


class RunOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """The options of a job for its runs. None: the task's own value, or else the worker's configuration."""

    retries: Annotated[int, Meta(ge=0, le=MAX_RETRIES)] | None = None
    timeout_seconds: Annotated[float, Meta(gt=0, le=MAX_TIMEOUT_SECONDS)] | None = None
    backoff: Backoff | None = None
    concurrency: Concurrency | None = None
    rate: RateLimit | None = None
    fairness_key: Key | None = None
    guarantee: Guarantee | None = None
    retry_on: Causes | None = None
    """Only these are retried."""
    never_on: Causes | None = None
    """These are not."""
    max_snoozes: Annotated[int, Meta(ge=0, le=MAX_SNOOZES)] | None = None
    signal: Signal | None = None
    condition: Condition | None = None
    """Must be true before the run starts; otherwise the run is skipped. Only steps have one."""
    metadata: dict[str, Any] | None = None
    """Stored with the job and its runs. Foliot does not interpret it."""
    tags: Tags | None = None
    """Labels for searches."""
    notify: tuple[Notification, ...] | None = None
    """The notifications of its end. SQL reads them."""
    notifies: UUID | None = None
    """The run whose end this run reports. Only the store sets it."""
    templates: bool | None = None
    """Whether placeholders in the payload are rendered. None: in those of `shell`, `http` and waits."""
    item: str | None = None
    """The field of the payload that holds the item of a map: data, in which no placeholder is rendered. Written when
    the map is expanded; a request cannot set it."""
    tick: StoredTick | None = None
    """The tick of a schedule that the run is for. Written by the store; a request cannot set it."""
    traceparent: Traceparent | None = None
    """The trace that the run belongs to, and the span that submitted it (see model/tracing.py)."""
    snoozes: int = 0
    """How often the run has been put off so far. Counted by the store; a request cannot set it."""

    def or_else(self, other: RunOptions) -> RunOptions:
        """These options, and where they are silent the other ones. Limits are the job's alone: they count when it is
        stored."""
        return RunOptions(
            guarantee=other.guarantee if self.guarantee is None else self.guarantee,
            retries=other.retries if self.retries is None else self.retries,
            timeout_seconds=other.timeout_seconds if self.timeout_seconds is None else self.timeout_seconds,
            backoff=other.backoff if self.backoff is None else self.backoff,
            retry_on=other.retry_on if self.retry_on is None else self.retry_on,
            never_on=other.never_on if self.never_on is None else self.never_on,
            max_snoozes=other.max_snoozes if self.max_snoozes is None else self.max_snoozes,
            signal=self.signal,
            templates=self.templates,
            item=self.item,
            tick=self.tick,
            traceparent=self.traceparent,
            snoozes=self.snoozes,
        )


NO_OPTIONS = RunOptions()


class NewRun(msgspec.Struct, frozen=True, gc=False):
    """A run to be stored. `due_at` and `delay_seconds` exclude each other; neither: due now."""

    id: UUID
    task: str
    queue: str
    name: str | None = None
    priority: int = 0
    due_at: datetime | None = None
    delay_seconds: float | None = None
    payload: str | None = None
    """JSON text of an object; None stands for the empty one."""
    options: str | None = None
    """JSON text of a `RunOptions`; None when it says nothing."""
    unique_key: str | None = None
    on_conflict: OnConflict = "return_existing"
    """The answer if a live run has the key."""
    expires_at: datetime | None = None
    """The run does not start after this time."""

    @property
    def is_fair(self) -> bool:
        """Whether it may take turns with runs of other fairness keys. A text that only mentions the word counts, too,
        and does no harm."""
        return self.options is not None and "fairness_key" in self.options


class StoredRun(msgspec.Struct, frozen=True, gc=False):
    """The store's decision about a submitted run, on the database's clock."""

    state: RunState
    due_at: datetime
    created_at: datetime


class SubmittedRun(msgspec.Struct, frozen=True, gc=False):
    """The run that a submission returned: a new run, or the existing one."""

    id: UUID
    name: str | None
    task: str
    queue: str
    priority: int
    state: RunState
    attempt: int
    due_at: datetime
    created_at: datetime
    is_new: bool


class Cancel(msgspec.Struct, frozen=True):
    """A request to end a run."""

    reason: str
    message: str
    is_forced: bool = False


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A worker's exclusive right to one attempt; every write of that attempt carries its token."""

    run_id: UUID
    token: int
    attempt: int
    lost: int
    queue: str
    task: str
    payload: str | None
    options: str | None
    waited_seconds: float = 0.0
    """From due to claimed."""
    flags: int | None = None
    """The three answers below as one number, because every column costs every run. None: three times no."""

    @property
    def has_upstream(self) -> bool:
        """There are results of other runs, or a signal, for it to read."""
        return bool(self.flags and self.flags & 1)

    @property
    def concerns_others(self) -> bool:
        """Others wait for its end."""
        return bool(self.flags and self.flags & 2)

    @property
    def is_disabled(self) -> bool:
        """Its task is turned off in its namespace: the attempt must not begin."""
        return bool(self.flags and self.flags & 4)


class StartableRun(msgspec.Struct, frozen=True, gc=False):
    """A ready run that waits for a worker."""

    id: UUID
    rank: int
    priority: int


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything there is to see of one run, live or finished."""

    id: UUID
    name: str | None
    task: str
    queue: str
    state: RunState
    reason: str | None
    priority: int
    attempt: int
    lost: int
    worker_id: UUID | None
    payload: Any
    options: Any
    result: Any
    error: Any
    output: bytes | None
    due_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    job_id: UUID | None = None
    tick_at: datetime | None = None
    rerun_of: UUID | None = None
    rerun_as: UUID | None = None
    """The run that was last made to take its place."""
    progress: Any = None
    """`{share, message, attempt}`: what a running attempt said last."""
    cancel: Any = None
    unique_key: str | None = None
    """The key that no other run may have while this one is live."""
    expires_at: datetime | None = None
    """Of a live run: not to be started from then on."""
    held_by: HeldBy | None = None
    """Of a held run: what holds it."""
    parent_id: UUID | None = None
    """The workflow or map that it is a part of."""
    step: str | None = None
    """Its key in the workflow, or the number of its item."""
    upstream: list[UUID] | None = None
    """The runs that it waits for, or waited for."""
    total: int | None = None
    """The number of children of a live workflow or map."""
    unfinished: int | None = None
    awaits: Any = None
    """Of a function that waits without a slot: `{until, signals, children}`."""
