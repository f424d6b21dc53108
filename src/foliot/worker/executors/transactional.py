"""Tasks whose effect and completion commit together: the effect happens exactly once, whatever dies when.

The function writes through `ctx.connection`, an asyncpg connection to Foliot's own database, inside a transaction. When
it returns, the same transaction finishes the run, fenced by its token: if the run is no longer ours, all of it is
rolled back. When it fails, so is its effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from foliot.model.outcome import Attempted, Ending, Outcome
from foliot.model.states import RunState
from foliot.sdk.app import Function
from foliot.sdk.context import Context
from foliot.store.database_errors import leaves_session_unusable
from foliot.store.store import Store
from foliot.worker.executors.base import Executor
from foliot.worker.executors.python import SUCCEEDED_WITH_NOTHING, succeeded, wanted
from foliot.worker.executors.task_errors import classify_error_off_loop


class NoLongerOurs(Exception):
    """The run was given to another worker, or cancelled, before it was finished."""


def in_a_transaction(
    function: Function, *, store: Store, worker_id: Callable[[], UUID], limit_seconds: float, result_max_bytes: int
) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        async with store.database.transaction(statement_seconds=limit_seconds, idle_seconds=limit_seconds) as session:
            context.connection = session
            attempted = await called(session, payload, context)
            if attempted.ending is not Ending.SUCCEEDED:
                raise ResultRefused(attempted)
            done = Outcome(context.run_id, context.token, RunState.SUCCEEDED, result=attempted.result)
            # Its end locks the run: a worker that is frozen right here must not keep it from the others for as long as
            # the task may take.
            if not await store.database.in_its_end(session, partial(store.runs.finish_in, session, worker_id(), done)):
                raise NoLongerOurs(f"run {context.run_id} is no longer this worker's: its effect is undone")
        return Attempted(Ending.COMMITTED)

    async def called(session: Any, payload: dict[str, Any], context: Context) -> Attempted:
        try:
            result = await function(**payload, **wanted(function, context))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if leaves_session_unusable(error):
                session.terminate()
            # In words from here on: an error of the task's own must not go through what takes care of the transaction.
            return await classify_error_off_loop(error)
        return SUCCEEDED_WITH_NOTHING if result is None else succeeded(result, result_max_bytes)

    async def judged(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            return await execute(payload, context)
        except ResultRefused as refused:
            return refused.attempted

    return judged


class ResultRefused(Exception):
    """Carries a failure out of the transaction, so that it is rolled back."""

    def __init__(self, attempted: Attempted) -> None:
        super().__init__()
        self.attempted = attempted
