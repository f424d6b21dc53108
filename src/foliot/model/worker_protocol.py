"""The messages between a worker without database access and an API server. docs/worker-protocol.md explains them.

Names of queues and tasks are bare: the token decides about the namespace. `result`, `payload` and `options` are JSON
values inside the message, not texts. Binary output is base64.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from foliot.model.checkpoint import Kind
from foliot.model.circuit_breaker import Circuit
from foliot.model.guarantee import Guarantee
from foliot.model.outcome import AttemptError
from foliot.model.run import MAX_TIMEOUT_SECONDS, RunOptions, Tags
from foliot.model.schedule import Schedule
from foliot.model.states import RunState
from foliot.model.tick import StoredTick

QUEUES_MAX, TASKS_MAX, HELD_MAX, LABELS_MAX = 1_000, 10_000, 100_000, 50
DECLINED_MAX = 1_000
CLAIMED_MAX, OUTCOMES_MAX, PARTS_MAX, RECORDS_MAX, UPSTREAM_MAX = 500, 1_000, 10_000, 1_000, 100
WAIT_MAX_SECONDS = 30.0

NOTHING = msgspec.Raw(b"")
"""A JSON value that is missing."""


def raw(text: str | None) -> msgspec.Raw:
    # The very object, because that is how an encoder tells a default.
    return NOTHING if text is None else msgspec.Raw(text)


def text_of(value: msgspec.Raw) -> str | None:
    return bytes(value).decode() or None


# A queue or task has no slash in its name, so a name cannot reach into another namespace.
BareName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}$(?!\n)")]
Token = Annotated[int, Meta(ge=1, le=2**62)]
Slots = Annotated[int, Meta(ge=0, le=100_000)]
Attempt = tuple[UUID, Token]
"""A run and its token."""
Held = Annotated[list[Attempt], Meta(max_length=HELD_MAX)]
Text = Annotated[str, Meta(max_length=200)]
Seconds = Annotated[float, Meta(ge=0, le=MAX_TIMEOUT_SECONDS)]


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """The base class of requests."""


class FromWorker(Message, frozen=True, kw_only=True, gc=False):
    worker_id: UUID
    """Chosen by the worker, a new one for every registration."""


class AboutAttempt(Message, frozen=True, kw_only=True, gc=False):
    run_id: UUID
    token: Token


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that a worker needs before it registers."""

    namespace: str
    lease_seconds: float
    """A worker that was not heard of for this long loses its runs."""
    beat_seconds: float
    """Time between two heartbeats."""
    wait_seconds: float
    """Longest wait that a request may ask for."""
    retries: int
    """Retries of a task that does not say how many it has."""
    timeout_seconds: float
    """Time limit of a task that does not say how long it may take."""
    result_max_bytes: int
    output_max_bytes: int
    body_max_bytes: int
    """Largest request."""


class TaskOffer(Message, frozen=True, kw_only=True, gc=False):
    """A task that the worker can run."""

    queue: BareName = "default"
    guarantee: Guarantee | None = None
    tags: Tags | None = None
    schema: dict[str, Any] | None = None
    """The JSON Schema of its payload."""
    description: Annotated[str, Meta(max_length=300)] = ""
    schedule: Schedule | None = None
    """Makes a recurring job of the same name."""


class RegisterWorker(FromWorker, frozen=True, kw_only=True, gc=False):
    name: Text
    queues: Annotated[dict[BareName, Slots], Meta(min_length=1, max_length=QUEUES_MAX)]
    """The slots of each queue."""
    tasks: Annotated[dict[BareName, TaskOffer], Meta(max_length=TASKS_MAX)]
    labels: Annotated[dict[Text, Text], Meta(max_length=LABELS_MAX)] = {}


class WorkerRegistered(msgspec.Struct, frozen=True):
    worker_id: UUID
    lease_seconds: float


class ClaimRuns(FromWorker, frozen=True, kw_only=True, gc=False):
    slots: Annotated[dict[BareName, Slots], Meta(max_length=QUEUES_MAX)]
    """Free slots of each queue."""
    tasks: Annotated[list[BareName], Meta(max_length=TASKS_MAX)]
    held: Held | None = None
    """After a claim without an answer: the attempts that the worker knows of. The answer has those that it owns and
    does not know of, and claims nothing."""
    declined: Annotated[list[UUID], Meta(max_length=DECLINED_MAX)] = []
    """Runs that the worker left to workers with another version of their task. It gets none of them."""
    is_idle: bool = False
    """The worker holds nothing. The claim then begins a lease."""


class ClaimedRun(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    run_id: UUID
    token: int
    """Every later message about the attempt carries it."""
    queue: str
    task: str
    attempt: int
    lost: int = 0
    payload: msgspec.Raw = NOTHING
    """Missing: {}."""
    options: msgspec.Raw = NOTHING
    """The options of the job, such as `retries` and `timeout_seconds`. Missing: it has none."""
    waited_seconds: float = 0.0
    has_upstream: bool = False
    """There are results of earlier steps, or a signal: ask for them before it starts."""
    concerns_others: bool = False
    """Other runs wait for its end."""
    is_disabled: bool = False
    """Its task is disabled: end it as failed, without starting it."""


class ClaimedRuns(msgspec.Struct, frozen=True, omit_defaults=True):
    runs: list[ClaimedRun]
    lease_seconds: float | None = None
    """After a claim with `is_idle`: how long the lease lasts, counted from the request."""


class WaitForWork(FromWorker, frozen=True, kw_only=True, gc=False):
    slots: Annotated[dict[BareName, Slots], Meta(max_length=QUEUES_MAX)]
    tasks: Annotated[list[BareName], Meta(max_length=TASKS_MAX)]
    seconds: Annotated[float, Meta(ge=0, le=WAIT_MAX_SECONDS)] = WAIT_MAX_SECONDS


class WorkNews(msgspec.Struct, frozen=True):
    """Hints: they may be wrong, and they may be missing."""

    claim: bool = False
    """There may be a run to claim."""
    beat: bool = False
    """Send a heartbeat now: its answer has something new."""


class BeatWorker(FromWorker, frozen=True, kw_only=True, gc=False):
    held: Held
    """The attempts whose end is not stored yet."""
    left_running: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """Slots that are taken by functions whose attempts have ended."""
    is_idle: bool = False
    """The worker has claimed nothing since its last heartbeat with an answer, and holds nothing."""


class EndAttempt(msgspec.Struct, frozen=True, omit_defaults=True):
    run_id: UUID
    token: int
    is_lost: bool = False
    """The run no longer belongs to this worker. Otherwise it was cancelled."""
    reason: str = ""
    message: str = ""
    is_forced: bool = False


class WorkerBeat(msgspec.Struct, frozen=True, omit_defaults=True):
    is_renewed: bool
    """False: the worker is no longer registered. It must end its attempts and register again."""
    end: list[EndAttempt] = []
    is_draining: bool = False
    """Finish the attempts, claim nothing more, and leave."""
    owns_unheld: bool = False
    """The worker owns a run that `held` does not list: claim with `held`."""


class StoredOutcome(Message, frozen=True, kw_only=True, gc=False):
    """An outcome that the worker has decided itself, by the options of the run."""

    run_id: UUID
    token: Token
    state: RunState
    """The next state of the run: `scheduled` for another attempt, `ready` to give it back."""
    reason: Text | None = None
    delay_seconds: Seconds = 0.0
    result: msgspec.Raw = NOTHING
    error: AttemptError | None = None
    output: bytes = b""


class EndedAttempt(Message, frozen=True, kw_only=True, gc=False):
    """How an attempt ended. The server decides what becomes of the run."""

    run_id: UUID
    token: Token
    ending: Literal["succeeded", "failed", "timeout", "cancelled", "skipped", "snoozed", "released"]
    attempt: Annotated[int, Meta(ge=0, le=2**31)] = 1
    """`attempt`, `lost` and `options` are those of the claim, with the task's own options filled in."""
    lost: Annotated[int, Meta(ge=0, le=2**31)] = 0
    options: RunOptions = RunOptions()
    result: msgspec.Raw = NOTHING
    error: AttemptError | None = None
    reason: Text | None = None
    """Of a cancel: the reason that the heartbeat gave."""
    output: bytes = b""
    delay_seconds: Seconds | None = None
    is_retryable: bool | None = None


class StoreOutcomes(FromWorker, frozen=True, kw_only=True, gc=False):
    outcomes: Annotated[list[StoredOutcome], Meta(max_length=OUTCOMES_MAX)] = []
    ended: Annotated[list[EndedAttempt], Meta(max_length=OUTCOMES_MAX)] = []
    concerns_others: bool = False
    """One of the claims had `concerns_others`."""
    frees_limit: bool = False
    """One of the runs has the option `concurrency`."""


class OutcomesStored(msgspec.Struct, frozen=True):
    stored: int
    """Stored now, or before by a request whose answer was lost."""
    refused: int
    """Too late: these runs no longer belong to the worker."""


class OutputPart(AboutAttempt, frozen=True, kw_only=True, gc=False):
    position: Annotated[int, Meta(ge=0, le=2**62)]
    """Of its first byte in the output of the attempt."""
    chunk: Annotated[bytes, Meta(max_length=65_536)]


class ProgressMade(AboutAttempt, frozen=True, kw_only=True, gc=False):
    attempt: Annotated[int, Meta(ge=0, le=2**31)]
    share: Annotated[float, Meta(ge=0, le=1)] | None = None
    message: Annotated[str, Meta(max_length=20_000)] = ""


class WriteLogs(FromWorker, frozen=True, kw_only=True, gc=False):
    parts: Annotated[list[OutputPart], Meta(max_length=PARTS_MAX)] = []
    progress: Annotated[list[ProgressMade], Meta(max_length=PARTS_MAX)] = []
    ended: Held = []
    """Attempts whose whole output is stored with their outcome. Their parts are deleted."""


class ReadUpstream(FromWorker, frozen=True, kw_only=True, gc=False):
    attempts: Annotated[list[Attempt], Meta(max_length=UPSTREAM_MAX)]


class UpstreamResult(msgspec.Struct, frozen=True, omit_defaults=True):
    key: str
    """The step's key, or the run's name or id."""
    state: RunState
    result: msgspec.Raw = NOTHING


class RunsBefore(msgspec.Struct, frozen=True, omit_defaults=True):
    run_id: UUID
    results: list[UpstreamResult] = []
    signal: msgspec.Raw = NOTHING
    bytes: int = 0
    """The size of all results. They are missing if it is more than 16 MiB."""


class UpstreamRead(msgspec.Struct, frozen=True):
    runs: list[RunsBefore]


class OfAttempt(FromWorker, frozen=True, kw_only=True, gc=False):
    run_id: UUID
    token: Token


class CheckpointShown(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    kind: Kind
    function: str | None = None
    is_done: bool = True
    result: msgspec.Raw = NOTHING
    error: dict[str, str] | None = None
    due_at: datetime | None = None
    left_seconds: float | None = None
    child_id: UUID | None = None


class CheckpointsRead(msgspec.Struct, frozen=True, omit_defaults=True):
    is_held: bool
    """False: the run no longer belongs to the worker."""
    items: list[CheckpointShown] = []


class CheckpointRecord(Message, frozen=True, kw_only=True, gc=False):
    """A step that has returned, or a sleep that begins."""

    run_id: UUID
    token: Token
    name: Text
    kind: Literal["step", "sleep"]
    function: Annotated[str, Meta(max_length=1_000)] | None = None
    result: msgspec.Raw = NOTHING
    took_seconds: Seconds = 0.0
    wait_seconds: Seconds | None = None


class RecordCheckpoints(FromWorker, frozen=True, kw_only=True, gc=False):
    records: Annotated[list[CheckpointRecord], Meta(max_length=RECORDS_MAX)]


class CheckpointRecorded(msgspec.Struct, frozen=True, omit_defaults=True):
    is_held: bool
    due_at: datetime | None = None
    """When a sleep ends."""


class CheckpointsRecorded(msgspec.Struct, frozen=True):
    items: list[CheckpointRecorded]
    """In the order of the request."""


class AwaitSignal(OfAttempt, frozen=True, kw_only=True, gc=False):
    name: Text
    timeout_seconds: Seconds | None = None


class CallRun(OfAttempt, frozen=True, kw_only=True, gc=False):
    name: Text
    job: dict[str, Any]
    """A job, as `POST /v1/jobs` takes it."""


class RunCalled(msgspec.Struct, frozen=True, omit_defaults=True):
    is_held: bool
    run_id: UUID | None = None
    """The run that was called, now or by an earlier attempt."""


class NoteUnused(OfAttempt, frozen=True, kw_only=True, gc=False):
    names: Annotated[list[Text], Meta(max_length=10_000)]


class ExpandRun(OfAttempt, frozen=True, kw_only=True, gc=False):
    kind: Literal["workflow", "map"]
    payload: dict[str, Any]
    tick: StoredTick | None = None
    traceparent: Annotated[str, Meta(max_length=55)] | None = None
    upstream: dict[str, Any] = {}


class RunExpanded(msgspec.Struct, frozen=True):
    outcome: Literal["stored", "empty", "lost"]
    """`empty`: a map without items. `lost`: the run was cancelled or no longer belongs to the worker."""


class CheckPayload(FromWorker, frozen=True, kw_only=True, gc=False):
    task: BareName
    schema: dict[str, Any] | None = None
    payload: dict[str, Any]


class PayloadTaken(msgspec.Struct, frozen=True):
    elsewhere: bool
    """A live worker with another version of the task takes the payload."""


class CountOutcomes(FromWorker, frozen=True, kw_only=True, gc=False):
    succeeded: Annotated[list[BareName], Meta(max_length=OUTCOMES_MAX)] = []
    run_ids: Annotated[list[UUID], Meta(max_length=OUTCOMES_MAX)] = []
    """The runs that succeeded."""
    failures: Annotated[dict[BareName, Annotated[int, Meta(ge=1, le=OUTCOMES_MAX)]], Meta(max_length=OUTCOMES_MAX)] = {}
    """The number of failures since the last success."""
    circuits: Annotated[dict[BareName, Circuit], Meta(max_length=OUTCOMES_MAX)] = {}


class OutcomesCounted(msgspec.Struct, frozen=True):
    closed: list[str]
    open: dict[str, bool]
