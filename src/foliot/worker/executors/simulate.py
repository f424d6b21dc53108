"""The built-in task `simulate`: takes `execution_time_ms`, then fails with a chance of `fail_rate`. For trying Foliot out."""

from __future__ import annotations

import random
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from foliot.clock import Clock
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.context import Context
from foliot.worker.executors.base import Executor


class SimulatePayload(msgspec.Struct, frozen=True):
    """Further keys are welcome and ignored."""

    execution_time_ms: Annotated[float, Meta(ge=0, le=86_400_000)] = 0
    fail_rate: Annotated[float, Meta(ge=0, le=1)] = 0


def simulate(clock: Clock) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        asked = msgspec.convert(payload, SimulatePayload)
        await clock.sleep(asked.execution_time_ms / 1000)
        if random.random() < asked.fail_rate:  # noqa: S311
            return Attempted(Ending.FAILED, error=error_of("SimulatedFailure", f"failed by a chance of {asked.fail_rate:g}"))
        return Attempted(Ending.SUCCEEDED)

    return execute
