"""The interface of every kind of task.

An executor takes the payload and the attempt's context, and returns how the attempt ended. It writes output to the
context as it arrives. When it is cancelled, it stops everything it started and re-raises the CancelledError: the worker
knows the reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

from foliot.errors import Invalid
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.context import Context


class Executor(Protocol):
    async def __call__(self, payload: dict[str, Any], context: Context) -> Attempted: ...


Refuse = Callable[[dict[str, Any], Attempted], Awaitable[Attempted]]
"""Decides about an attempt whose function does not take the payload."""


def invalid_payload(error: Invalid) -> Attempted:
    """A failure without retries: the next attempt would get the same payload."""
    return Attempted(Ending.FAILED, error=error_of(type(error).__name__, str(error)), is_retryable=False)


def misfit(error: Invalid) -> Attempted:
    """The same for a function that was not called, because it does not take the payload."""
    return replace(invalid_payload(error), is_misfit=True)


async def fail_at_once(_: dict[str, Any], attempted: Attempted) -> Attempted:
    """For functions of which there is no other version."""
    return attempted
