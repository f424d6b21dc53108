"""Turns an error that a task raised into an ending: a failure, a retry, a snooze or a skip."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import replace

from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.task_exceptions import Fail, RetryIn, Skip, Snooze, Stopped, Suspended, checked_seconds
from foliot.worker.executors.error_text import exit_code_of, is_a, is_plain, kind_of, message_of, names_of, traceback_of

CANCELLED_ITSELF = Attempted(Ending.FAILED, error=error_of("CancelledError", "the task cancelled itself"))
SUSPENDED = Attempted(Ending.SUSPENDED)
RUN_LOST = Attempted(
    Ending.CANCELLED, reason="lost", error=error_of("Cancelled", "the run no longer belongs to this worker")
)
DESCRIBE_SECONDS = 2.0
"""How long an error may take to describe itself in a thread, when its attempt runs on the event loop."""


def classify_error(error: BaseException) -> Attempted:
    """The ending that the task meant by its error. Never raises."""
    try:
        return _classify(error)
    except BaseException as failure:
        why = f"{kind_of(failure)}: {message_of(failure, may_call=False)}"
        return classify_error_without_user_code(error, f"the error cannot be described: {why}")


def classify_error_without_user_code(error: BaseException, message: str = "") -> Attempted:
    """A failure, described without calling code of the error."""
    message = message or message_of(error, may_call=False)
    return Attempted(
        Ending.FAILED,
        error=error_of(kind_of(error), message, traceback_of(error, may_call=False)),
        causes=causes_of(error),
    )


async def classify_error_off_loop(error: BaseException) -> Attempted:
    """The same for the event loop: code of the error runs in a thread, and not for long."""
    if is_plain(error):
        return classify_error(error)
    loop = asyncio.get_running_loop()
    described: asyncio.Future[Attempted] = loop.create_future()

    def receive(attempted: Attempted) -> None:
        if not described.done():
            described.set_result(attempted)

    def describe() -> None:
        attempted = classify_error(error)
        with suppress(RuntimeError):
            # The loop is closed.
            loop.call_soon_threadsafe(receive, attempted)

    try:
        threading.Thread(target=describe, name="describe an error", daemon=True).start()
    except RuntimeError:
        return classify_error_without_user_code(error, "the error cannot be described: no thread could be started")
    await asyncio.wait([described], timeout=DESCRIBE_SECONDS)
    if described.done():
        return described.result()
    described.cancel()
    return classify_error_without_user_code(
        error, f"the error cannot be described: its __str__ did not return within {DESCRIBE_SECONDS:g} s"
    )


def _classify(error: BaseException) -> Attempted:
    if is_a(error, asyncio.CancelledError):
        return CANCELLED_ITSELF
    if is_suspension(error):
        return SUSPENDED
    if is_a(error, Stopped):
        return RUN_LOST
    kind, message = kind_of(error), message_of(error)
    if is_a(error, Snooze):
        return Attempted(
            Ending.SNOOZED, delay_seconds=_seconds(error), error=error_of(kind, message) if message else None
        )
    if is_a(error, Skip):
        return Attempted(Ending.SKIPPED, error=error_of(kind, message or "the task found nothing to do"))
    failed = Attempted(Ending.FAILED, error=error_of(kind, message, traceback_of(error)), causes=causes_of(error))
    if is_a(error, RetryIn):
        return replace(failed, is_retryable=True, delay_seconds=_seconds(error))
    return replace(failed, is_retryable=False) if is_a(error, Fail) else failed


def is_suspension(error: BaseException) -> bool:
    """Whether the error ends a durable function that waits. A task group wraps it."""
    if type(error) is BaseExceptionGroup:
        return all(is_suspension(one) for one in error.exceptions)
    return is_a(error, Suspended)


def _seconds(error: BaseException) -> float:
    """The delay, checked again: a task that changed it to NaN would run again at once, for ever."""
    return checked_seconds(error.seconds)  # type: ignore[attr-defined]


def causes_of(error: BaseException) -> frozenset[str | int]:
    """Every name that `retry_on` and `never_on` may use for the error, and its exit code."""
    code = exit_code_of(error)
    return frozenset(names_of(error)) | (frozenset() if code is None else {code})
