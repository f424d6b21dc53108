"""The states of a run, and the one table of what may follow what.

Nothing else decides which transitions exist: the SQL statements that write `state` name their from-states, and a test
tries every pair of states against real PostgreSQL and compares the result with `TRANSITIONS`.
"""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    WAITING = "waiting"
    """Its dependencies are unmet; it is made of other runs, which have not ended; or its function waits for such."""
    SCHEDULED = "scheduled"
    """Due in the future: a first start, a retry, a snooze, or the end of a sleep."""
    HELD = "held"
    """Due, but a limit, an open circuit or a signal that has not come holds it."""
    READY = "ready"
    """May be claimed now."""
    RUNNING = "running"
    """A worker holds its claim."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    # succeeded, failed: a workflow or map, when its last child ends
    RunState.WAITING: frozenset(
        {
            RunState.READY,
            RunState.SCHEDULED,
            RunState.HELD,
            RunState.SKIPPED,
            RunState.CANCELLED,
            RunState.SUCCEEDED,
            RunState.FAILED,
        }
    ),
    RunState.SCHEDULED: frozenset({RunState.READY, RunState.HELD, RunState.CANCELLED}),
    # scheduled, of what is held or ready: one with the same unique key took its place before it had started
    # skipped, failed: its condition was false, or had no value
    RunState.HELD: frozenset(
        {RunState.READY, RunState.SCHEDULED, RunState.CANCELLED, RunState.SKIPPED, RunState.FAILED}
    ),
    # held: it stood in a long line of runs that nobody may start, or one that has a limit took its place
    RunState.READY: frozenset(
        {RunState.RUNNING, RunState.SCHEDULED, RunState.HELD, RunState.CANCELLED, RunState.SKIPPED}
    ),
    # scheduled: a retry, a snooze or a sleep in the middle of its function; held: its function waits for a signal;
    # skipped: the task found nothing to do;
    # ready: released by a worker that stops, or its worker was lost; waiting: it is made of others now, or its function
    # waits for a run that it called
    RunState.RUNNING: frozenset(
        {
            RunState.SUCCEEDED,
            RunState.FAILED,
            RunState.SCHEDULED,
            RunState.HELD,
            RunState.READY,
            RunState.CANCELLED,
            RunState.SKIPPED,
            RunState.WAITING,
        }
    ),
    # Terminal states never change: a rerun is a new run that points back.
    RunState.SUCCEEDED: frozenset(),
    RunState.FAILED: frozenset(),
    RunState.CANCELLED: frozenset(),
    RunState.SKIPPED: frozenset(),
}

TERMINAL = frozenset(state for state, following in TRANSITIONS.items() if not following)
LIVE = frozenset(RunState) - TERMINAL


def sources_of(target: RunState) -> frozenset[RunState]:
    """The states from which `target` may be reached."""
    return frozenset(state for state, following in TRANSITIONS.items() if target in following)


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
