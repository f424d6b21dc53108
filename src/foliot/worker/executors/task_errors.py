"""Turns an error that a task raised into an ending: a failure, a retry or a snooze."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import replace

from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.flow_control import Fail, RetryIn, Snooze
from foliot.worker.executors.error_text import exit_code_of, is_a, is_plain, kind_of, message_of, names_of, traceback_of

CANCELLED_ITSELF = Attempted(Ending.FAILED, error=error_of("CancelledError", "the task cancelled itself"))
DESCRIBE_SECONDS = 2.0
"""How long an error may take to describe itself in a thread, when its attempt runs on the event loop."""


def classify_error(error: BaseException) -> Attempted:
    """The ending that the task meant by its error. Never raises."""
    try:
        return _classify(error)
    except BaseException as failure:
        return classify_error_without_user_code(
            error, f"the error cannot be described: {kind_of(failure)} while describing it"
        )


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
    kind, message = kind_of(error), message_of(error)
    if is_a(error, Snooze):
        return Attempted(
            Ending.SNOOZED, delay_seconds=_seconds(error), error=error_of(kind, message) if message else None
        )
    failed = Attempted(Ending.FAILED, error=error_of(kind, message, traceback_of(error)), causes=causes_of(error))
    if is_a(error, RetryIn):
        return replace(failed, is_retryable=True, delay_seconds=_seconds(error))
    return replace(failed, is_retryable=False) if is_a(error, Fail) else failed


def _seconds(error: BaseException) -> float:
    return float(error.seconds)  # type: ignore[attr-defined]


def causes_of(error: BaseException) -> frozenset[str | int]:
    """Every name that `retry_on` and `never_on` may use for the error, and its exit code."""
    code = exit_code_of(error)
    return frozenset(names_of(error)) | (frozenset() if code is None else {code})
