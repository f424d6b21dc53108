"""What a task meant by the error that it raised: a failure, or a word about what is to become of the run."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import replace

from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.control import Fail, RetryIn, Snooze

CANCELLED_ITSELF = Attempted(Ending.FAILED, error=error_of("CancelledError", "the task cancelled itself"))


def raised(error: BaseException) -> Attempted:
    """What a task meant by what it raised."""
    if isinstance(error, asyncio.CancelledError):
        return CANCELLED_ITSELF
    kind, lines = type(error).__qualname__, traceback.format_exception(error)
    if isinstance(error, Snooze):
        return Attempted(Ending.SNOOZED, delay_seconds=error.seconds, error=error_of(kind, str(error)) if str(error) else None)
    failed = Attempted(Ending.FAILED, error=error_of(kind, str(error), lines), causes=causes_of(error))
    if isinstance(error, RetryIn):
        return replace(failed, is_retryable=True, delay_seconds=error.seconds)
    return replace(failed, is_retryable=False) if isinstance(error, Fail) else failed


def causes_of(error: BaseException) -> frozenset[str | int]:
    """Every name by which `retry_on` and `never_on` may know it: of its class and of those it is derived from, short or with the module."""
    kinds = [kind for kind in type(error).__mro__ if kind is not object]
    names: set[str | int] = {
        name for kind in kinds for name in (kind.__name__, kind.__qualname__, f"{kind.__module__}.{kind.__qualname__}")
    }
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        names.add(error.code)
    return frozenset(names)
