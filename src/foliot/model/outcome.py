"""How an attempt ended, and what becomes of the run: the one place where that is decided."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never
from uuid import UUID

import msgspec

from foliot.model.backoff import DEFAULT_BACKOFF, wait_seconds
from foliot.model.retry import MAX_DELAY_SECONDS, is_retryable, may_retry
from foliot.model.run import DEFAULT_MAX_SNOOZES, RunOptions
from foliot.model.states import RunState

encode = msgspec.json.Encoder().encode

ERROR_TEXT_MAX = 16_384
ERROR_KIND_MAX = 200


class Ending(StrEnum):
    """How the attempt itself ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timeout"
    CANCELLED = "cancelled"
    """Somebody cancelled it."""
    COMMITTED = "committed"
    """It has finished its run itself, in its own transaction."""
    EXPANDED = "expanded"
    """Its run now consists of other runs."""
    SNOOZED = "snoozed"
    """Put off by the task itself: not consumed."""
    SKIPPED = "skipped"
    """The task found nothing to do."""
    SUSPENDED = "suspended"
    """Its function waits without a slot, and runs again later: not consumed."""
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
    """The code of the reason for a cancel."""
    delay_seconds: float | None = None
    """When to try again, where the attempt knows better than the back-off; how long to snooze."""
    causes: frozenset[str | int] = frozenset()
    """The causes of its failure besides the kind of its error: the base classes of the error, the exit code."""
    is_retryable: bool | None = None
    """The task's own answer to whether another attempt makes sense. None: the options decide."""
    is_misfit: bool = False
    """The function was not called, because it does not take the payload. Another version of it may."""


# Most runs end so, and looking up a member of an enumeration takes as long as making an outcome.
_SUCCEEDED: Final = RunState.SUCCEEDED


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The facts to store about one attempt. `state` is the next state of the run."""

    run_id: UUID
    token: int
    state: RunState
    reason: str | None = None
    delay_seconds: float = 0.0
    result: str | None = None
    error: str | None = None
    output: bytes | None = None


def succeeded(run_id: UUID, token: int, attempted: Attempted) -> Outcome:
    """The outcome of an attempt that succeeded, whatever its options."""
    return Outcome(run_id, token, _SUCCEEDED, result=attempted.result, output=attempted.output)


def decide(
    run_id: UUID, token: int, attempted: Attempted, *, attempt: int, lost: int, options: RunOptions, chance: float
) -> Outcome:
    """From how the attempt ended to what becomes of the run. `options` must be complete but for the back-off."""
    match attempted.ending:
        case Ending.SUCCEEDED:
            return succeeded(run_id, token, attempted)
        case Ending.SUSPENDED:
            # The store decides about the state: it knows whether what the run waits for has come.
            return Outcome(
                run_id, token, RunState.SCHEDULED, "suspended", result=attempted.result, output=attempted.output
            )
        case Ending.RELEASED:
            if options.guarantee == "at_most_once":
                # It had begun, and may not begin again.
                error = _encoded(
                    error_of("Released", "its worker stopped before it was done, and it may be started only once")
                )
                return Outcome(run_id, token, RunState.FAILED, "lost", error=error, output=attempted.output)
            return Outcome(run_id, token, RunState.READY)
        case Ending.COMMITTED | Ending.EXPANDED:
            raise ValueError("a run that was dealt with already has no outcome to be written")
        case Ending.CANCELLED:
            return Outcome(
                run_id,
                token,
                RunState.CANCELLED,
                attempted.reason,
                error=_encoded(attempted.error),
                output=attempted.output,
            )
        case Ending.SKIPPED:
            error = _encoded(attempted.error)
            return Outcome(run_id, token, RunState.SKIPPED, "skipped", error=error, output=attempted.output)
        case Ending.SNOOZED:
            return _snoozed(run_id, token, attempted, options)
        case Ending.FAILED | Ending.TIMED_OUT:
            return _failed(run_id, token, attempted, attempt=attempt, lost=lost, options=options, chance=chance)
        case _:
            assert_never(attempted.ending)


def _failed(
    run_id: UUID, token: int, attempted: Attempted, *, attempt: int, lost: int, options: RunOptions, chance: float
) -> Outcome:
    error = _encoded(attempted.error)
    reason = "error" if attempted.ending is Ending.FAILED else "timeout"
    if not _deserves_another(attempted, options) or not may_retry(
        attempt=attempt, lost=lost, retries=options.retries or 0
    ):
        return Outcome(run_id, token, RunState.FAILED, reason, error=error, output=attempted.output)
    delay = attempted.delay_seconds
    if delay is None:
        delay = wait_seconds(options.backoff or DEFAULT_BACKOFF, attempt - lost, chance)
    return Outcome(
        run_id, token, RunState.SCHEDULED, reason, within_reason(delay), error=error, output=attempted.output
    )


def _deserves_another(attempted: Attempted, options: RunOptions) -> bool:
    if attempted.is_retryable is not None:
        return attempted.is_retryable
    causes = attempted.causes | {attempted.error.kind} if attempted.error else attempted.causes
    return is_retryable(causes, retry_on=options.retry_on, never_on=options.never_on)


def _snoozed(run_id: UUID, token: int, attempted: Attempted, options: RunOptions) -> Outcome:
    most = DEFAULT_MAX_SNOOZES if options.max_snoozes is None else options.max_snoozes
    if options.snoozes >= most:
        error = _encoded(error_of("SnoozedTooOften", f"put off {options.snoozes} times, and max_snoozes is {most}"))
        return Outcome(run_id, token, RunState.FAILED, "error", error=error, output=attempted.output)
    delay = within_reason(attempted.delay_seconds or 0.0)
    return Outcome(
        run_id, token, RunState.SCHEDULED, "snoozed", delay, error=_encoded(attempted.error), output=attempted.output
    )


def within_reason(delay_seconds: float) -> float:
    """A wait that PostgreSQL can add to an instant, even if a task or another server requests a longer one.
    NaN is no wait."""
    return min(delay_seconds, MAX_DELAY_SECONDS) if delay_seconds > 0 else 0.0


def _encoded(error: AttemptError | None) -> str | None:
    return encode(error).decode() if error else None


def error_of(kind: str, message: str, traceback: str = "") -> AttemptError:
    return AttemptError(storable(kind[:ERROR_KIND_MAX]), storable(message), storable(traceback, keep_end=True))


def storable(text: str, *, keep_end: bool = False) -> str:
    """Text that PostgreSQL takes whatever it held: no NUL, no lone surrogate, bounded. Completion must never fail for
    content."""
    if len(text) > ERROR_TEXT_MAX:
        text = f"[...]{text[-ERROR_TEXT_MAX:]}" if keep_end else f"{text[:ERROR_TEXT_MAX]}[...]"
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
