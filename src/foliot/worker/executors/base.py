"""What every kind of task looks like to a worker.

An executor gets the payload and returns how the attempt ended. It must stop when it is cancelled, taking along whatever it started, and let
the CancelledError through: the worker knows why it cancelled.
"""

from __future__ import annotations

from typing import Any, Protocol

from foliot.model.outcome import Attempted


class Executor(Protocol):
    async def __call__(self, payload: dict[str, Any]) -> Attempted: ...
