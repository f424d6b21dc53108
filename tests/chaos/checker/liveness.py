"""Invariants of progress, checked after the last fault has ended."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.history import SECOND, History
from tests.chaos.checker.invariant import invariant

SETTLED = 60 * SECOND


@invariant(7)
def starts_soon(history: History) -> Iterator[str]:
    """Ready runs are claimed soon, except while a fault is in the way."""
    paused = {request.key for request in history.journal if request.kind == "pause"}
    most = history.settings.lag_seconds
    for run_id, changes in history.changes_of.items():
        ready_at = 0
        for change in changes:
            if change.after == "ready":
                ready_at = ready_at or change.at
                continue
            if change.after == "running" and ready_at and (seconds := (change.at - ready_at) / SECOND) > most:
                run = history.by_id.get(run_id)
                slowed = history.slowed_seconds(ready_at, change.at)
                if run is not None and run.queue not in paused and seconds > most + slowed:
                    yield (
                        f"run {run_id} was ready at {ready_at} and claimed {seconds:.1f} s later, {slowed:.1f} s "
                        f"of it in faults or without the machine"
                    )
            ready_at = 0


@invariant(18)
def nothing_is_stuck(history: History) -> Iterator[str]:
    """A minute after the last fault, nothing is overdue, and every job has handled its ticks."""
    settings = history.settings
    # A dead worker's claim is released when its lease has expired.
    longest = int((settings.longest_seconds + settings.worker_ttl_seconds) * SECOND)
    settled_at = settings.ended_at - SETTLED - int(history.taken_seconds(settings.quiet_at, settings.ended_at) * SECOND)
    if settings.ended_at < settings.quiet_at:
        yield "the tables were read before the faults were over"
    for run in history.runs:
        # A run that became due, or started, a moment ago is still in progress.
        since = max(run.due_at, run.created_at, settings.quiet_at)
        if run.is_live and run.state != "running" and since < settled_at:
            yield f"run {run.id} ({run.task}) is {run.state} and was due at {run.due_at}"
        if run.state == "running" and run.started_at + longest < settled_at:
            yield f"run {run.id} ({run.task}) is running since {run.started_at}: nobody is at it"
    for job in history.jobs:
        if job.next_at and job.next_at < settled_at:
            yield f"job {job.name} has not dealt with its tick at {job.next_at}"
