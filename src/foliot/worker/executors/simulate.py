"""The built-in task `simulate`, for trying out Foliot: takes `execution_time_ms`, then fails with probability
`fail_rate`."""

from __future__ import annotations

import random
from typing import Any

from foliot.clock import Clock
from foliot.errors import Invalid
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.model.payloads import SimulatePayload, payload_of
from foliot.sdk.context import Context
from foliot.worker.executors.base import Executor, invalid_payload


def simulate(clock: Clock) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            asked = payload_of(payload, SimulatePayload)
        except Invalid as error:
            return invalid_payload(error)
        await clock.sleep(asked.execution_time_ms / 1000)
        if random.random() < asked.fail_rate:  # noqa: S311
            return Attempted(
                Ending.FAILED, error=error_of("SimulatedFailure", f"failed with probability {asked.fail_rate:g}")
            )
        return Attempted(Ending.SUCCEEDED)

    return execute
