"""Runs Python functions: async functions on the event loop, plain functions in threads.

The payload's keys are the keyword arguments.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from foliot.errors import Invalid
from foliot.model.json_text import encode_storable
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.app import Function
from foliot.sdk.context import Context
from foliot.sdk.signature import Signature
from foliot.worker.executors.base import Executor, Refuse, fail_at_once, misfit
from foliot.worker.executors.error_text import message_of
from foliot.worker.executors.task_errors import classify_error, classify_error_off_loop
from foliot.worker.executors.threads import TaskThreads

ASK_SECONDS = 1.0
"""How long a plain function with a context may take to notice `should_stop` before it counts as unstoppable."""
SUCCEEDED_WITH_NOTHING = Attempted(Ending.SUCCEEDED)


def on_the_loop(
    function: Function, *, result_max_bytes: int, signature: Signature | None = None, refuse: Refuse = fail_at_once
) -> Executor:
    # Looked up once, because this code runs for every run.
    needs_context = asks_for_context(function)
    signature = signature or Signature(function)
    bind, function = signature.bind, signature.call

    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            arguments = bind(payload)
        except Invalid as error:
            return await refuse(payload, misfit(error))
        try:
            result = await (function(**arguments, ctx=context) if needs_context else function(**arguments))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # A task that calls sys.exit() fails. The worker and the other attempts keep running.
            return await classify_error_off_loop(error)
        return SUCCEEDED_WITH_NOTHING if result is None else succeeded(result, result_max_bytes)

    return execute


def in_a_thread(
    function: Function,
    threads: TaskThreads,
    *,
    result_max_bytes: int,
    signature: Signature | None = None,
    refuse: Refuse = fail_at_once,
) -> Executor:
    # Looked up once, because this code runs for every run.
    needs_context = asks_for_context(function)
    signature = signature or Signature(function)
    bind, function = signature.bind, signature.call

    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        # In the context of the attempt, so that its output is known.
        calling = threads.start(call, bind, function, payload, context if needs_context else None, result_max_bytes)
        try:
            attempted: Attempted = await calling.answer
        except asyncio.CancelledError:
            if not calling.has_ended and not threads.withdraw(calling):
                returned = calling.abandon()
                if needs_context:
                    await asyncio.wait([returned], timeout=ASK_SECONDS)
                if not returned.done():
                    # A thread cannot be stopped. It keeps its slot, or more functions would run than there are slots.
                    context.left_running = returned
            raise
        return await refuse(payload, attempted) if attempted.is_misfit else attempted

    return execute


def context_argument(function: Function, context: Context) -> dict[str, Any]:
    """The context argument, if the function has one."""
    return {"ctx": context} if asks_for_context(function) else {}


@cache
def asks_for_context(function: Function) -> bool:
    try:
        return "ctx" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def call(
    bind: Callable[[dict[str, Any]], dict[str, Any]],
    function: Function,
    payload: dict[str, Any],
    context: Context | None,
    result_max_bytes: int,
) -> Attempted:
    """Converts the payload, calls the function and encodes its result or error, all in the same thread off the event
    loop."""
    try:
        arguments = bind(payload)
    except Invalid as error:
        return misfit(error)
    try:
        result = function(**arguments) if context is None else function(**arguments, ctx=context)
    except BaseException as error:
        return classify_error(error)
    return SUCCEEDED_WITH_NOTHING if result is None else succeeded(result, result_max_bytes)


def succeeded(result: object, result_max_bytes: int) -> Attempted:
    """Encodes the result. A result that cannot be stored is an error of the task; it is never truncated."""
    try:
        encoded = encode_storable(result)
        size = len(encoded)
        if size <= result_max_bytes:
            return Attempted(Ending.SUCCEEDED, result=encoded.decode())
    except BaseException as error:
        # Encoding may run user code, such as properties of a dataclass.
        message = f"the result cannot be encoded as JSON: {message_of(error)}"
        return Attempted(Ending.FAILED, error=error_of("ResultNotStorable", message), is_retryable=False)
    advice = (
        f"the result has {size} bytes of JSON, more than result_max_bytes = {result_max_bytes}: "
        "store it elsewhere and return its location"
    )
    return Attempted(Ending.FAILED, error=error_of("ResultTooLarge", advice))
