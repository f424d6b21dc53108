"""How an attempt ended, and what becomes of the run: the one place where that is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never
from uuid import UUID

import msgspec

from foliot.model.retry import DEFAULT_BACKOFF, may_retry, wait_seconds
from foliot.model.run import RunOptions
from foliot.model.states import RunState

ERROR_TEXT_MAX = 16_384


class Ending(StrEnum):
    """What happened to the attempt itself."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timeout"
    CANCELLED = "cancelled"
    """Somebody asked for its end."""
    COMMITTED = "committed"
    """It has finished its run itself, in its own transaction."""
    RELEASED = "released"
    """Given back unfinished because the worker stops: not consumed."""


class AttemptError(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an attempt failed, in text that PostgreSQL can always store."""

    kind: str
    message: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Attempted:
    """An attempt that ended: what it left behind, before it is decided what becomes of the run."""

    ending: Ending
    result: str | None = None
    """JSON text."""
    error: AttemptError | None = None
    output: bytes | None = None
    reason: str | None = None
    """Of a cancel: the machine's word for it."""
    delay_seconds: float | None = None
    """Of a failure that is retried: how long to wait, in place of the back-off."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is to be written about one attempt: `state` is where the run goes."""

    run_id: UUID
    token: int
    state: RunState
    reason: str | None = None
    delay_seconds: float = 0.0
    result: str | None = None
    error: str | None = None
    output: bytes | None = None


def decide(run_id: UUID, token: int, attempted: Attempted, *, attempt: int, lost: int, options: RunOptions, chance: float) -> Outcome:
    """From how the attempt ended to what becomes of the run. `options` must be complete but for the back-off."""
    match attempted.ending:
        case Ending.SUCCEEDED:
            return Outcome(run_id, token, RunState.SUCCEEDED, result=attempted.result, output=attempted.output)
        case Ending.RELEASED:
            return Outcome(run_id, token, RunState.READY)
        case Ending.COMMITTED:
            raise ValueError("a run that is finished already has no outcome to be written")
        case Ending.CANCELLED:
            return Outcome(run_id, token, RunState.CANCELLED, attempted.reason, error=_encoded(attempted.error), output=attempted.output)
        case Ending.FAILED | Ending.TIMED_OUT:
            error = _encoded(attempted.error)
            reason = "error" if attempted.ending is Ending.FAILED else "timeout"
            if not may_retry(attempt=attempt, lost=lost, retries=options.retries or 0):
                return Outcome(run_id, token, RunState.FAILED, reason, error=error, output=attempted.output)
            delay = attempted.delay_seconds
            if delay is None:
                delay = wait_seconds(options.backoff or DEFAULT_BACKOFF, attempt - lost, chance)
            return Outcome(run_id, token, RunState.SCHEDULED, reason, delay, error=error, output=attempted.output)
        case _:
            assert_never(attempted.ending)


def _encoded(error: AttemptError | None) -> str | None:
    return msgspec.json.encode(error).decode() if error else None


def error_of(kind: str, message: str, traceback: Sequence[str] = ()) -> AttemptError:
    return AttemptError(kind=storable(kind), message=storable(message), traceback=storable("".join(traceback), keep_end=True))


def storable(text: str, *, keep_end: bool = False) -> str:
    """Text that PostgreSQL takes whatever it held: no NUL, no lone surrogate, bounded. Completion must never fail for content."""
    if len(text) > ERROR_TEXT_MAX:
        text = f"[...]{text[-ERROR_TEXT_MAX:]}" if keep_end else f"{text[:ERROR_TEXT_MAX]}[...]"
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
