"""Rules of alerts: a condition, the jobs that it is about, and the channels that get messages.

A condition is one of the types below; its field `kind` names it. Each kind has its own fields, and its own scope:
`SCOPES` lists the fields of `scope` that a kind takes. `check_rule` refuses what can never work.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from foliot.errors import Invalid
from foliot.model.run_request import Name
from foliot.model.text_patterns import ZONE
from foliot.triggers.durations import parse_duration
from foliot.triggers.zones import zone_named
from foliot.validation_errors import form

CHANNELS_MAX = 10
SPAN = form(r"^(?:[1-9][0-9]{0,2}[dhms]){1,3}$(?!\n)", "be a duration such as 30s, 15m or 1h30m")
MAYBE_PATTERN = form(r"^[^\x00-\x1f]+$(?!\n)", "have no control characters")
TIME_OF_DAY = form(r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]$(?!\n)", "be a time of day such as 06:00")
Span = Annotated[str, Meta(pattern=SPAN, examples=["30s", "15m", "1h30m"])]
Pattern = Annotated[str, Meta(min_length=1, max_length=200, pattern=MAYBE_PATTERN)]
Severity = Literal["info", "warning", "critical"]
Each = Literal["job", "task", "queue", "rule"]
"""Each job, each task or each queue has an alert of its own, or all of them together have one."""


class RunFailed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="run_failed"):
    """A run failed for good: no retries are left. Resolved once a later run of the recurring job succeeds."""

    each: Each = "job"
    """A run without a recurring job counts for its task."""
    resolve_after: Span = "1h"
    """Also resolved when nothing has failed for this long."""


class DeadLetters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="dead_letters"):
    """More runs than a number failed within a time, and were not replayed."""

    above: Annotated[int, Meta(ge=0, le=1000)] = 10
    window: Span = "1h"


class SuccessRate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="success_rate"):
    """The share of runs that succeeded, of those that succeeded or failed, is too low."""

    below: Annotated[float, Meta(gt=0, le=100)] = 95
    """In percent."""
    window: Span = "15m"
    min_runs: Annotated[int, Meta(ge=1, le=1_000_000)] = 20
    """With fewer runs in the window there is no alert."""
    each: Each = "rule"


class UnusualDuration(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="unusual_duration"
):
    """The latest run of a recurring job took, or takes, longer than its last thirty runs let expect."""

    factor: Annotated[float, Meta(ge=1, le=1000)] = 3
    """Times the 95th percentile of the runs before."""
    min_runs: Annotated[int, Meta(ge=3, le=29)] = 10
    at_least: Span = "10s"
    """Shorter runs are never unusual."""


class NotStarted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="not_started"):
    """A run of a recurring job has not started within a time after it was due, or none has started by a time of day."""

    within: Span | None = None
    by: Annotated[str, Meta(pattern=TIME_OF_DAY, examples=["06:00"])] | None = None
    timezone: Annotated[str, Meta(max_length=100, extra_json_schema=ZONE)] = "UTC"
    lookback: Span = "1d"
    """With `by`: a run within this time before counts."""


class NotFinished(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="not_finished"):
    """As `not_started`, for runs that have not succeeded."""

    within: Span | None = None
    by: Annotated[str, Meta(pattern=TIME_OF_DAY, examples=["06:00"])] | None = None
    timezone: Annotated[str, Meta(max_length=100, extra_json_schema=ZONE)] = "UTC"
    lookback: Span = "1d"


class TickMissed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="tick_missed"):
    """A tick of a recurring job was missed, or is late. Resolved when a later tick fires."""

    late: Span = "1m"


class QueueLag(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="queue_lag"):
    """A run has been ready in a queue for longer than this."""

    above: Span = "10s"


class NoWorker(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="no_worker"):
    """Runs of a task wait, and no live worker of their queue offers the task."""


class CircuitOpen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="circuit_open"):
    """The circuit breaker of a task is open."""


class FewWorkers(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="few_workers"):
    """Fewer live workers than this serve the queues of the scope."""

    below: Annotated[int, Meta(ge=1, le=100_000)] = 1


class FewSchedulers(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="few_schedulers"):
    """Fewer scheduler nodes than this are alive. With none, nobody is left to raise the alert."""

    below: Annotated[int, Meta(ge=2, le=1000)] = 2


class DatabaseTrouble(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="database"):
    """PostgreSQL is in trouble. Each field has an alert of its own; null turns it off."""

    replication_lag: Span | None = "1m"
    transaction_age: Span | None = "1h"
    """An old transaction keeps dead rows from being removed."""
    kept_wal_bytes: Annotated[int, Meta(ge=1, le=2**60)] | None = 10 * 2**30
    """The log that a replication slot keeps fills the disk."""
    size_bytes: Annotated[int, Meta(ge=1, le=2**60)] | None = None
    connections_percent: Annotated[float, Meta(gt=0, le=100)] | None = 90


class HeartbeatSilent(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="heartbeat_silent"
):
    """Nobody has called `POST /v1/heartbeats/{name}` for a time."""

    heartbeat: Name
    every: Span = "1h"
    grace: Span = "5m"


class ArchiveFailing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="archive_failing"):
    """The archive of history can't be written."""


Condition = (
    RunFailed
    | DeadLetters
    | SuccessRate
    | UnusualDuration
    | NotStarted
    | NotFinished
    | TickMissed
    | QueueLag
    | NoWorker
    | CircuitOpen
    | FewWorkers
    | FewSchedulers
    | DatabaseTrouble
    | HeartbeatSilent
    | ArchiveFailing
)
OF_RUNS = frozenset({"job", "task", "queue", "tag"})
SCOPES: dict[type, frozenset[str]] = {
    RunFailed: OF_RUNS,
    DeadLetters: OF_RUNS,
    SuccessRate: OF_RUNS,
    UnusualDuration: frozenset({"job", "task", "queue", "tag"}),
    NotStarted: frozenset({"job"}),
    NotFinished: frozenset({"job"}),
    TickMissed: frozenset({"job", "task", "queue", "tag"}),
    QueueLag: frozenset({"queue"}),
    NoWorker: frozenset({"task", "queue"}),
    CircuitOpen: frozenset({"task"}),
    FewWorkers: frozenset({"queue"}),
}
"""The fields of `scope` that a condition takes. Others take none."""
INSTALLATION = (FewSchedulers, DatabaseTrouble, ArchiveFailing)
"""About the whole installation, so that only a token for all namespaces may set them up."""


class Scope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The jobs, tasks or queues that a rule is about: by default, all of the namespace. `*` stands for any text."""

    job: Pattern | None = None
    task: Pattern | None = None
    queue: Pattern | None = None
    tag: Pattern | None = None


class AlertRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"hold": "for"}):
    """The body of `PUT /v1/alert-rules/{name}`."""

    condition: Condition
    scope: Scope = Scope()
    severity: Severity = "warning"
    channels: Annotated[tuple[Name, ...], Meta(max_length=CHANNELS_MAX)] = ()
    """Names of alert channels. Without any, alerts are only listed."""
    repeat: Span | None = "4h"
    """An open alert that nobody has acknowledged is sent again after this time; null: never."""
    hold: Span | None = None
    """The condition must hold for this long."""
    description: Annotated[str, Meta(max_length=2000)] | None = None
    enabled: bool = True


def seconds_of(span: str, field: str = "") -> int:
    return parse_duration(span, field=field)


def span_of(span: str) -> timedelta:
    return timedelta(seconds=seconds_of(span))


def check_rule(rule: AlertRule) -> None:
    """Raises `Invalid`, with the field, for a rule that could never work."""
    condition, kind = rule.condition, kind_of(rule)
    allowed = SCOPES.get(type(condition), frozenset())
    for field in ("job", "task", "queue", "tag"):
        if getattr(rule.scope, field) is not None and field not in allowed:
            takes = f"; it takes {', '.join(sorted(allowed))}" if allowed else ""
            raise Invalid(f"scope.{field}: the condition {kind} has no such scope{takes}", field=f"scope.{field}")
    if isinstance(condition, NotStarted | NotFinished):
        if rule.scope.job is None:
            raise Invalid(f"scope.job: the condition {kind} needs the name of a recurring job", field="scope.job")
        if (condition.within is None) == (condition.by is None):
            raise Invalid("condition.within: give either within or by", field="condition.within")
        try:
            zone_named(condition.timezone)
        except Invalid as error:
            raise Invalid(f"condition.{error.detail}", field="condition.timezone") from None
    if len(set(rule.channels)) < len(rule.channels):
        raise Invalid("channels: a channel is listed twice", field="channels")


def kind_of(rule: AlertRule) -> str:
    return str(type(rule.condition).__struct_config__.tag)
