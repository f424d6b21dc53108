"""Turns the ends of runs into spans: the run, its attempts, and the waits before them. Pure.

A span of the run reaches from its creation to its end. Below it alternate waits and attempts. Ticks, lost and retried
attempts, limits and open circuits are events of the run. Links lead to the runs that a step waited for, to the run that
a rerun repeats, and to the run that a notification reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from foliot.exporters import otlp_encoding as otlp
from foliot.exporters.otlp_encoding import CONSUMER, HAS_REMOTE, INTERNAL, IS_REMOTE, SAMPLED
from foliot.model.namespace import bare, namespace_of
from foliot.model.states import RunState
from foliot.model.tracing import RunTrace, attempt_span, trace_of, traceparent_in, wait_span
from foliot.store.exports import EarlierAttempt, TracedEnding

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LINKS_MAX = 100
CACHED = 1_024
"""Groups of attributes, each shared by the runs of a task that end alike."""


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
) -> Iterator[bytes]:
    """The encoded spans of a run."""
    trace = _trace(ending, ratio)
    tries = [
        Try(one.token, one.attempt, one.worker_id, one.started_at, one.at, one.outcome, one.error_kind,
            one.error_message)
        for one in earlier
    ]  # fmt: skip
    has_last = any(one.token == ending.token for one in tries) if tries else False
    if ending.worker_id is not None and ending.started_at is not None and not has_last:
        tries.append(
            Try(ending.token, ending.attempt, ending.worker_id, ending.started_at, ending.at, str(ending.state),
                ending.error_kind, ending.error_message)
        )  # fmt: skip
    run_id = otlp.passing_attribute("foliot.run.id", str(ending.id))
    yield _run(ending, trace, run_id, tries, circuits)
    waits_from = ending.created_at
    for one in tries:
        yield _wait(ending, trace, one.token, waits_from, one.started_at)
        yield _attempt(ending, trace, run_id, one)
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


def _run(
    ending: TracedEnding, trace: RunTrace, run_id: bytes, tries: Sequence[Try], circuits: Mapping[str, datetime]
) -> bytes:
    details = [run_id, _run_attributes(ending.task, ending.queue, ending.state, ending.reason, ending.attempt)]
    if ending.name is not None or ending.job_id is not None or ending.parent_id is not None:
        details.append(otlp.attributes({
            "foliot.run.name": ending.name and bare(ending.name), "foliot.job.id": _text(ending.job_id),
            "foliot.parent.id": _text(ending.parent_id), "foliot.step": ending.step,
        }))  # fmt: skip
    details += _events(ending, tries, circuits)
    details += _links(ending, trace)
    if ending.state is RunState.FAILED:
        details.append(otlp.error(ending.error_message or ending.reason or ""))
    flags = SAMPLED | HAS_REMOTE | IS_REMOTE if trace.parent_id else SAMPLED
    ids = trace.trace_id, trace.span_id, trace.parent_id
    name = bare(ending.task)
    return _span(ids, name, ending.created_at, ending.at, b"".join(details), kind=CONSUMER, flags=flags)


@lru_cache(CACHED)
def _run_attributes(task: str, queue: str, state: RunState, reason: str | None, attempts: int) -> bytes:
    return otlp.attributes({
        "foliot.task": bare(task), "foliot.queue": bare(queue), "foliot.namespace": namespace_of(queue),
        "foliot.run.state": str(state), "foliot.run.reason": reason, "foliot.run.attempts": attempts,
    })  # fmt: skip


def _events(ending: TracedEnding, tries: Sequence[Try], circuits: Mapping[str, datetime]) -> Iterator[bytes]:
    if ending.tick_at is not None:
        yield _event("tick", ending.created_at, {"foliot.tick": ending.tick_at.isoformat()})
    if ending.concurrency_key or ending.rate_key:
        keys = {"foliot.concurrency.key": ending.concurrency_key, "foliot.rate.key": ending.rate_key}
        yield _event("limited", ending.created_at, keys)
    for one in tries:
        if one.token != ending.token:
            name = {"lost": "attempt lost", "snoozed": "snoozed", "suspended": "suspended"}.get(one.outcome, "retry")
            yield _event(name, one.at, {"foliot.attempt": one.attempt, "exception.type": one.error_kind})
    opened_at = circuits.get(ending.task)
    if opened_at is not None and ending.created_at <= opened_at:
        yield _event("circuit opened", min(opened_at, ending.at), {"foliot.task": bare(ending.task)})


def _links(ending: TracedEnding, trace: RunTrace) -> Iterator[bytes]:
    # Steps of one workflow share a trace. A rerun, and a notification of a run without one, have their own.
    for upstream in (ending.upstream or ())[:LINKS_MAX]:
        yield _link(trace.trace_id if ending.parent_id else upstream.int, upstream, "after")
    if ending.rerun_of is not None and ending.parent_id is None:
        yield _link(ending.rerun_of.int, ending.rerun_of, "rerun of")
    if ending.notifies is not None and ending.traceparent is None:
        yield _link(UUID(ending.notifies).int, UUID(ending.notifies), "notifies")


def _link(trace_id: int, run_id: UUID, kind: str) -> bytes:
    span_id = trace_of(run_id, None, 1.0).span_id
    return otlp.link(trace_id, span_id, {"foliot.link": kind, "foliot.run.id": str(run_id)})


def _wait(ending: TracedEnding, trace: RunTrace, token: int, since: datetime, until: datetime) -> bytes:
    ids = trace.trace_id, wait_span(ending.id, token), trace.span_id
    due = _event("due", ending.due_at, {}) if since < ending.due_at <= until else b""
    return _span(ids, "wait", since, until, due)


def _attempt(ending: TracedEnding, trace: RunTrace, run_id: bytes, one: Try) -> bytes:
    ids = trace.trace_id, attempt_span(ending.id, one.token), trace.span_id
    details = run_id + _attempt_attributes(one.attempt, one.outcome, one.worker_id)
    if one.outcome in ("error", "timeout", "lost", "failed"):
        if one.error_kind is not None:
            exception = {"exception.type": one.error_kind, "exception.message": one.error_message}
            details += _event("exception", one.at, exception)
        details += otlp.error(one.error_message or one.outcome)
    return _span(ids, f"attempt {one.attempt}", one.started_at, one.at, details)


@lru_cache(CACHED)
def _attempt_attributes(attempt: int, outcome: str, worker_id: UUID) -> bytes:
    return otlp.attributes({
        "foliot.attempt": attempt, "foliot.outcome": outcome, "foliot.worker.id": str(worker_id),
    })  # fmt: skip


def _span(
    ids: tuple[int, int, int],
    name: str,
    start: datetime,
    end: datetime,
    details: bytes,
    *,
    kind: int = INTERNAL,
    flags: int = SAMPLED,
) -> bytes:
    times = _nanoseconds(start), _nanoseconds(end)
    return otlp.span(ids, name, times, kind=kind, flags=flags, details=details)


def _event(name: str, at: datetime, values: Mapping[str, otlp.Value]) -> bytes:
    return otlp.event(name, _nanoseconds(at), values)


def _text(run_id: UUID | None) -> str | None:
    return None if run_id is None else str(run_id)


def _nanoseconds(at: datetime) -> int:
    since = at - EPOCH
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000
