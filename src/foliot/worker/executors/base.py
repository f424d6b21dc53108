"""What every kind of task looks like to a worker.

An executor gets the payload and the attempt's context, and returns how the attempt ended. Output goes to the context as
it comes. It must stop when it is cancelled, taking along whatever it started, and let the CancelledError through: the
worker knows why it cancelled.
"""

from __future__ import annotations

from typing import Any, Protocol

from foliot.errors import Invalid
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.context import Context


class Executor(Protocol):
    async def __call__(self, payload: dict[str, Any], context: Context) -> Attempted: ...


def invalid_payload(error: Invalid) -> Attempted:
    """A payload that can't work: another attempt would get the same one."""
    return Attempted(Ending.FAILED, error=error_of(type(error).__name__, str(error)), is_retryable=False)
