"""What a task meant by the error that it raised: a failure, or a word about what is to become of the run."""

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
"""What code of the task's own gets to say what an error is, where it would hold up the event loop."""


def classify_error(error: BaseException) -> Attempted:
    """What a task meant by what it raised. Raises nothing itself, whatever the error is."""
    try:
        return _meant(error)
    except BaseException as failure:
        return classify_error_without_user_code(
            error, f"the error can't be described: that failed with {kind_of(failure)}"
        )


def classify_error_without_user_code(error: BaseException, message: str = "") -> Attempted:
    """A failure in as many words as there are without calling code of the error's own."""
    message = message or message_of(error, may_call=False)
    return Attempted(
        Ending.FAILED,
        error=error_of(kind_of(error), message, traceback_of(error, may_call=False)),
        causes=causes_of(error),
    )


async def classify_error_off_loop(error: BaseException) -> Attempted:
    """The same, where code of the error's own must not hold up everything else: it runs in a thread, and not for
    long."""
    if is_plain(error):
        return classify_error(error)
    loop = asyncio.get_running_loop()
    told: asyncio.Future[Attempted] = loop.create_future()

    def hear(attempted: Attempted) -> None:
        if not told.done():
            told.set_result(attempted)

    def tell() -> None:
        attempted = classify_error(error)
        with suppress(RuntimeError):
            # The loop is closed: nobody waits any more.
            loop.call_soon_threadsafe(hear, attempted)

    try:
        threading.Thread(target=tell, name="describe an error", daemon=True).start()
    except RuntimeError:
        return classify_error_without_user_code(
            error, "the error can't be described: no thread could be started for it"
        )
    await asyncio.wait([told], timeout=DESCRIBE_SECONDS)
    if told.done():
        return told.result()
    told.cancel()
    return classify_error_without_user_code(
        error, f"the error can't be described: its __str__ did not return within {DESCRIBE_SECONDS:g} s"
    )


def _meant(error: BaseException) -> Attempted:
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
    """Every name by which `retry_on` and `never_on` may know it: of its class and of those it is derived from, short or
    with the module."""
    code = exit_code_of(error)
    return frozenset(names_of(error)) | (frozenset() if code is None else {code})
