"""Runs Python functions: async functions on the event loop, plain functions in threads.

The payload's keys are the keyword arguments.
"""

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
"""How long a plain function with a context may take to notice `should_stop` before it counts as unstoppable."""
SUCCEEDED_WITH_NOTHING = Attempted(Ending.SUCCEEDED)


def on_the_loop(function: Function, *, result_max_bytes: int) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            result = await function(**payload, **context_argument(function, context))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # A task that calls sys.exit() fails. The worker and the other attempts keep running.
            return await classify_error_off_loop(error)
        return SUCCEEDED_WITH_NOTHING if result is None else succeeded(result, result_max_bytes)

    return execute


def in_a_thread(function: Function, threads: ThreadPoolExecutor, *, result_max_bytes: int) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        running = threads.submit(call, function, payload | context_argument(function, context), result_max_bytes)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if not running.cancel():
                if asks_for_context(function):
                    await _ended(running)
                if not running.done():
                    # A thread cannot be stopped. It keeps its slot, or more functions would run than there are slots.
                    context.left_running = running
            raise

    return execute


async def _ended(running: Future[Any]) -> None:
    """Waits briefly for a function that was asked to stop. Its result is discarded."""
    ending = asyncio.wrap_future(running)
    ending.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    await asyncio.wait([ending], timeout=ASK_SECONDS)


def context_argument(function: Function, context: Context) -> dict[str, Any]:
    """The context argument, if the function has one."""
    return {"ctx": context} if asks_for_context(function) else {}


@cache
def asks_for_context(function: Function) -> bool:
    try:
        return "ctx" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def call(function: Function, arguments: dict[str, Any], result_max_bytes: int) -> Attempted:
    """Calls the function and encodes its result or error in the same thread, off the event loop."""
    try:
        result = function(**arguments)
    except BaseException as error:
        return classify_error(error)
    return SUCCEEDED_WITH_NOTHING if result is None else succeeded(result, result_max_bytes)


def succeeded(result: object, result_max_bytes: int) -> Attempted:
    """Encodes the result. A result that cannot be stored is an error of the task; it is never truncated."""
    try:
        encoded = _encode(result)
    except BaseException as error:
        # Encoding may run user code, such as properties of a dataclass.
        message = f"the result cannot be encoded as JSON: {message_of(error)}"
        return Attempted(Ending.FAILED, error=error_of("ResultNotStorable", message), is_retryable=False)
    size = len(encoded.encode())
    if size > result_max_bytes:
        advice = (
            f"the result has {size} bytes of JSON, more than result_max_bytes = {result_max_bytes}: "
            "store it elsewhere and return its location"
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
