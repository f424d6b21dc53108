"""Decides about runs whose payload this worker's version of the task does not take.

While code is being replaced, workers with different versions of a task run side by side, and any of them may claim a
run. If another live version takes the payload, the run is put off for a moment, without using up an attempt, and this
worker leaves it to the others for a while (`declined_runs.py`). Otherwise the run fails at once, because a retry would
get the same payload.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from foliot.errors import StoreUnavailable
from foliot.model.namespace import Namespace
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.app import Task
from foliot.worker.backend import Calls
from foliot.worker.executors.base import Refuse

PUT_OFF_SECONDS = 1.0


class Handover:
    def __init__(self, calls: Calls, *, namespace: Namespace) -> None:
        self._calls = calls
        self._namespace = namespace

    def refuse(self, task: Task) -> Refuse:
        async def refuse(payload: dict[str, Any], attempted: Attempted) -> Attempted:
            return await self._decide(task, payload, attempted)

        return refuse

    async def _decide(self, task: Task, payload: dict[str, Any], attempted: Attempted) -> Attempted:
        try:
            is_taken = await self._calls.takes_elsewhere(self._namespace, task.name, task.signature.schema, payload)
        except StoreUnavailable:
            return _put_off(attempted, "PostgreSQL does not answer, so it is unknown whether another version does")
        if is_taken:
            put_off = _put_off(attempted, "another version of the task does, and a worker with it runs")
            return replace(put_off, is_misfit=True)
        return attempted


def _put_off(attempted: Attempted, why: str) -> Attempted:
    error = attempted.error
    message = f"this version of the task does not take the payload; {why}"
    if error is not None:
        message = f"{message}. {error.message}"
    seconds = PUT_OFF_SECONDS * random.uniform(0.5, 1.5)  # noqa: S311
    return Attempted(Ending.SNOOZED, delay_seconds=seconds, error=error_of("OtherVersion", message))
