"""Python functions: async ones on the event loop, plain ones in threads. The payload's keys are the keyword arguments."""

from __future__ import annotations

import asyncio
import inspect
import json
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import msgspec

from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.app import Function
from foliot.sdk.context import Context
from foliot.worker.executors.base import Executor

ASK_SECONDS = 1.0
"""What a plain function that can ask whether it should stop gets for it, before it counts as one that does not."""
SUCCEEDED_WITH_NOTHING = Attempted(Ending.SUCCEEDED)


def on_the_loop(function: Function, *, result_max_bytes: int) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        result = await function(**payload, **wanted(function, context))
        return SUCCEEDED_WITH_NOTHING if result is None else succeeded(result, result_max_bytes)

    return execute


def in_a_thread(function: Function, threads: ThreadPoolExecutor, *, result_max_bytes: int) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        running = threads.submit(_call, function, payload | wanted(function, context))
        try:
            result = await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if not running.cancel():
                if asks_for_context(function):
                    await _ended(running)
                if not running.done():
                    # A thread can't be ended. It keeps the slot for as long as it goes on, or there would be more at work than slots.
                    context.left_running = running
            raise
        return SUCCEEDED_WITH_NOTHING if result is None else succeeded(result, result_max_bytes)

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


def _call(function: Function, payload: dict[str, Any]) -> Any:
    try:
        return function(**payload)
    except StopIteration as error:
        # A future can't carry it: whoever awaits would wait for ever. Async functions get the same from Python itself.
        raise RuntimeError("the task raised StopIteration") from error


def succeeded(result: object, result_max_bytes: int) -> Attempted:
    """A result that can't be kept is an error of the task, said plainly; it is never cut."""
    try:
        encoded = _encode(result)
    except (TypeError, ValueError, RecursionError) as error:
        return Attempted(Ending.FAILED, error=error_of("ResultNotStorable", f"the result is not JSON: {error}"))
    size = len(encoded.encode())
    if size > result_max_bytes:
        advice = (
            f"the result has {size} bytes of JSON, more than result_max_bytes = {result_max_bytes}: store it elsewhere and return where"
        )
        return Attempted(Ending.FAILED, error=error_of("ResultTooLarge", advice))
    return Attempted(Ending.SUCCEEDED, result=encoded)


def _encode(result: object) -> str:
    try:
        return msgspec.json.encode(result).decode()
    except UnicodeEncodeError:
        # A lone surrogate: escaped, it is valid JSON text.
        return json.dumps(msgspec.to_builtins(result), allow_nan=False)
