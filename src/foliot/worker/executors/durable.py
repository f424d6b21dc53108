"""Runs functions that may use durable steps: on the event loop or in a thread, from the top in every attempt."""

from __future__ import annotations

import asyncio
from typing import Any

from foliot.model.outcome import Attempted, Ending
from foliot.sdk.context import Context
from foliot.sdk.durable import RAISED_BY_ITSELF
from foliot.sdk.durable_context import CheckpointSource, Surroundings
from foliot.worker.executors.base import Executor
from foliot.worker.executors.task_errors import SUSPENDED


def durable(executor: Executor, checkpoints: CheckpointSource, *, is_threaded: bool) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        main = asyncio.current_task()
        surroundings = Surroundings(checkpoints, asyncio.get_running_loop(), None if is_threaded else main)
        context.run_in(surroundings)
        try:
            attempted = await executor(payload, context)
        except asyncio.CancelledError:
            steps = surroundings.durable
            if steps is None or not steps.suspension.is_under_way or context.should_stop():
                if steps is not None:
                    await steps.close()
                raise
            attempted = SUSPENDED
            if main is not None:
                main.uncancel()
        steps = surroundings.durable
        if steps is not None:
            return await steps.concluded(attempted)
        return RAISED_BY_ITSELF if attempted.ending is Ending.SUSPENDED else attempted

    return execute
