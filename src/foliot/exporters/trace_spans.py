"""Turns the ends of runs into spans: the run, its attempts, and the waits before them. Pure.

A span of the run reaches from its creation to its end. Below it alternate waits and attempts. Ticks, lost and retried
attempts, limits and open circuits are events of the run. Links lead to the runs that a step waited for, to the run that
a rerun repeats, and to the run that a notification reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from foliot.model.namespace import bare, namespace_of
from foliot.model.states import RunState
from foliot.model.tracing import RunTrace, attempt_span, trace_of, traceparent_in, wait_span
from foliot.store.exports import EarlierAttempt, TracedEnding

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
LINKS_MAX = 100
ERROR, CONSUMER, INTERNAL = Status.STATUS_CODE_ERROR, Span.SPAN_KIND_CONSUMER, Span.SPAN_KIND_INTERNAL
HAS_REMOTE, IS_REMOTE = 0x100, 0x200
Value = str | int | None


class Try(NamedTuple):
    """An attempt, an earlier one or the last."""

    token: int
    attempt: int
    worker_id: UUID
    started_at: datetime
    at: datetime
    outcome: str
    error_kind: str | None
    error_message: str | None


def is_kept(ending: TracedEnding, ratio: float) -> bool:
    """Whether the run is sent: it belongs to a sampled trace, it failed, or it took more than one attempt."""
    if ending.state is RunState.FAILED or ending.attempt > 1 or ending.lost:
        return True
    return _trace(ending, ratio).is_sampled


def spans_of(
    ending: TracedEnding, earlier: Sequence[EarlierAttempt], circuits: Mapping[str, datetime], ratio: float
) -> Iterator[Span]:
    trace = _trace(ending, ratio)
    tries = [
        Try(one.token, one.attempt, one.worker_id, one.started_at, one.at, one.outcome, one.error_kind,
            one.error_message)
        for one in earlier
    ]  # fmt: skip
    if (
        ending.worker_id is not None
        and ending.started_at is not None
        and all(one.token != ending.token for one in tries)
    ):
        tries.append(
            Try(ending.token, ending.attempt, ending.worker_id, ending.started_at, ending.at, str(ending.state),
                ending.error_kind, ending.error_message)
        )  # fmt: skip
    yield _run(ending, trace, tries, circuits)
    waits_from = ending.created_at
    for one in tries:
        yield _wait(ending, trace, one.token, waits_from, one.started_at)
        yield _attempt(ending, trace, one)
        waits_from = one.at
    if not tries or tries[-1].token != ending.token:
        # It ended while it waited, or it is a workflow or map, which waits for its parts.
        until = ending.started_at if not tries and ending.started_at is not None else ending.at
        yield _wait(ending, trace, ending.token, waits_from, until)


def by_run(attempts: Iterable[EarlierAttempt]) -> dict[UUID, list[EarlierAttempt]]:
    return {run_id: list(found) for run_id, found in groupby(attempts, key=lambda one: one.run_id)}


def _trace(ending: TracedEnding, ratio: float) -> RunTrace:
    # Somebody may have written another text past the API.
    return trace_of(ending.id, traceparent_in(ending.traceparent), ratio)


def _run(ending: TracedEnding, trace: RunTrace, tries: Sequence[Try], circuits: Mapping[str, datetime]) -> Span:
    task = bare(ending.task)
    span = _span(trace, trace.span_id, trace.parent_id, task, ending.created_at, ending.at)
    span.kind = CONSUMER
    if trace.parent_id:
        span.flags |= HAS_REMOTE | IS_REMOTE
    _set(span.attributes, {
        "foliot.run.id": str(ending.id), "foliot.task": task, "foliot.queue": bare(ending.queue),
        "foliot.namespace": namespace_of(ending.queue), "foliot.run.state": str(ending.state),
        "foliot.run.reason": ending.reason, "foliot.run.name": ending.name and bare(ending.name),
        "foliot.run.attempts": ending.attempt,
        "foliot.job.id": _text(ending.job_id),
        "foliot.parent.id": _text(ending.parent_id), "foliot.step": ending.step,
    })  # fmt: skip
    _events(span, ending, tries, circuits)
    _links(span, ending, trace)
    if ending.state is RunState.FAILED:
        span.status.code = ERROR
        span.status.message = ending.error_message or ending.reason or ""
    return span


def _events(span: Span, ending: TracedEnding, tries: Sequence[Try], circuits: Mapping[str, datetime]) -> None:
    if ending.tick_at is not None:
        _event(span, "tick", ending.created_at, {"foliot.tick": ending.tick_at.isoformat()})
    if ending.concurrency_key or ending.rate_key:
        keys = {"foliot.concurrency.key": ending.concurrency_key, "foliot.rate.key": ending.rate_key}
        _event(span, "limited", ending.created_at, keys)
    for one in tries:
        if one.token != ending.token:
            name = {"lost": "attempt lost", "snoozed": "snoozed", "suspended": "suspended"}.get(one.outcome, "retry")
            _event(span, name, one.at, {"foliot.attempt": one.attempt, "exception.type": one.error_kind})
    opened_at = circuits.get(ending.task)
    if opened_at is not None and ending.created_at <= opened_at:
        _event(span, "circuit opened", min(opened_at, ending.at), {"foliot.task": bare(ending.task)})


def _links(span: Span, ending: TracedEnding, trace: RunTrace) -> None:
    # Steps of one workflow share a trace. A rerun, and a notification of a run without one, have their own.
    for upstream in (ending.upstream or ())[:LINKS_MAX]:
        _link(span, trace.trace_id if ending.parent_id else upstream.int, upstream, "after")
    if ending.rerun_of is not None and ending.parent_id is None:
        _link(span, ending.rerun_of.int, ending.rerun_of, "rerun of")
    if ending.notifies is not None and ending.traceparent is None:
        _link(span, UUID(ending.notifies).int, UUID(ending.notifies), "notifies")


def _link(span: Span, trace_id: int, run_id: UUID, kind: str) -> None:
    link = span.links.add(
        trace_id=trace_id.to_bytes(16, "big"), span_id=trace_of(run_id, None, 1.0).span_id.to_bytes(8, "big")
    )
    _set(link.attributes, {"foliot.link": kind, "foliot.run.id": str(run_id)})


def _wait(ending: TracedEnding, trace: RunTrace, token: int, since: datetime, until: datetime) -> Span:
    span = _span(trace, wait_span(ending.id, token), trace.span_id, "wait", since, until)
    if since < ending.due_at <= until:
        _event(span, "due", ending.due_at, {})
    return span


def _attempt(ending: TracedEnding, trace: RunTrace, one: Try) -> Span:
    name = f"attempt {one.attempt}"
    span = _span(trace, attempt_span(ending.id, one.token), trace.span_id, name, one.started_at, one.at)
    _set(span.attributes, {
        "foliot.run.id": str(ending.id), "foliot.attempt": one.attempt, "foliot.outcome": one.outcome,
        "foliot.worker.id": str(one.worker_id),
    })  # fmt: skip
    if one.outcome in ("error", "timeout", "lost", "failed"):
        span.status.code = ERROR
        span.status.message = one.error_message or one.outcome
        error = {"exception.type": one.error_kind, "exception.message": one.error_message}
        if one.error_kind is not None:
            _event(span, "exception", one.at, error)
    return span


def _span(trace: RunTrace, span_id: int, parent_id: int, name: str, start: datetime, end: datetime) -> Span:
    began = _nanoseconds(start)
    return Span(
        trace_id=trace.trace_id.to_bytes(16, "big"),
        span_id=span_id.to_bytes(8, "big"),
        parent_span_id=parent_id.to_bytes(8, "big") if parent_id else b"",
        name=name,
        kind=INTERNAL,
        flags=1,
        start_time_unix_nano=began,
        # The clock of the database may have been set back.
        end_time_unix_nano=max(began, _nanoseconds(end)),
    )


def _event(span: Span, name: str, at: datetime, attributes: Mapping[str, Value]) -> None:
    _set(span.events.add(name=name, time_unix_nano=_nanoseconds(at)).attributes, attributes)


def _set(target: list[KeyValue], values: Mapping[str, Value]) -> None:  # the repeated field of a message
    target.extend(
        [
            KeyValue(
                key=key, value=AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=value)
            )
            for key, value in values.items()
            if value is not None
        ]
    )


def _text(run_id: UUID | None) -> str | None:
    return None if run_id is None else str(run_id)


def _nanoseconds(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND * 1000
