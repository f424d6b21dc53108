"""Python functions: async ones on the event loop, plain ones in threads. The payload's keys are the keyword
arguments."""

from __future__ import annotations

import asyncio
import inspect
import json
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import msgspec

from foliot.model.json_text import encode_finite, refuse_not_finite
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.app import Function
from foliot.sdk.context import Context
from foliot.worker.executors.base import Executor
from foliot.worker.executors.error_text import message_of
from foliot.worker.executors.task_errors import classify_error, classify_error_off_loop

ASK_SECONDS = 1.0
"""What a plain function that can ask whether it should stop gets for it, before it counts as one that does not."""
SUCCEEDED_WITH_NOTHING = Attempted(Ending.SUCCEEDED)


def on_the_loop(function: Function, *, result_max_bytes: int) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            result = await function(**payload, **wanted(function, context))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # A task that calls sys.exit() fails; the worker and the other attempts go on.
            return await classify_error_off_loop(error)
        return SUCCEEDED_WITH_NOTHING if result is None else succeeded(result, result_max_bytes)

    return execute


def in_a_thread(function: Function, threads: ThreadPoolExecutor, *, result_max_bytes: int) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        running = threads.submit(call, function, payload | wanted(function, context), result_max_bytes)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if not running.cancel():
                if asks_for_context(function):
                    await _ended(running)
                if not running.done():
                    # A thread can't be ended. It keeps the slot for as long as it goes on, or there would be more at
                    # work than slots.
                    context.left_running = running
            raise

    return execute


async def _ended(running: Future[Any]) -> None:
    """Waits for a function that was asked to stop, but not for long. What comes of it is nobody's business any more."""
    ending = asyncio.wrap_future(running)
    ending.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    await asyncio.wait([ending], timeout=ASK_SECONDS)


def wanted(function: Function, context: Context) -> dict[str, Any]:
    """The context, for a function that asks for it."""
    return {"ctx": context} if asks_for_context(function) else {}


@cache
def asks_for_context(function: Function) -> bool:
    try:
        return "ctx" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def call(function: Function, arguments: dict[str, Any], result_max_bytes: int) -> Attempted:
    """In a thread or a process of its own: what the function returned or raised is put into words here, where nobody
    else is held up, and nothing of it goes any further."""
    try:
        result = function(**arguments)
    except BaseException as error:
        return classify_error(error)
    return SUCCEEDED_WITH_NOTHING if result is None else succeeded(result, result_max_bytes)


def succeeded(result: object, result_max_bytes: int) -> Attempted:
    """A result that can't be kept is an error of the task, said plainly; it is never cut."""
    try:
        encoded = _encode(result)
    except BaseException as error:
        # Properties of a dataclass, say, are code of the task's own.
        message = f"the result can't be written as JSON: {message_of(error)}"
        return Attempted(Ending.FAILED, error=error_of("ResultNotStorable", message), is_retryable=False)
    size = len(encoded.encode())
    if size > result_max_bytes:
        advice = (
            f"the result has {size} bytes of JSON, more than result_max_bytes = {result_max_bytes}: "
            "store it elsewhere and return where"
        )
        return Attempted(Ending.FAILED, error=error_of("ResultTooLarge", advice))
    return Attempted(Ending.SUCCEEDED, result=encoded)


def _encode(result: object) -> str:
    try:
        return encode_finite(result).decode()
    except UnicodeEncodeError:
        # A lone surrogate: escaped, it is valid JSON text.
        plain = msgspec.to_builtins(result)
        refuse_not_finite(plain)
        return json.dumps(plain, allow_nan=False)
