"""Runs transactional tasks, whose effect and completion commit together: the effect happens exactly once.

The function writes through `ctx.connection`, an asyncpg connection to Foliot's own database, inside a transaction. When
it returns, the same transaction finishes the run, fenced by its token. If the run no longer belongs to this worker, or
if the function fails, the transaction is rolled back.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from foliot.errors import Invalid
from foliot.model.outcome import Attempted, Ending, Outcome
from foliot.model.states import RunState
from foliot.sdk.app import Function
from foliot.sdk.context import Context
from foliot.sdk.signature import Signature
from foliot.store.database_errors import leaves_session_unusable
from foliot.store.store import Store
from foliot.worker.executors.base import Executor, Refuse, fail_at_once, misfit
from foliot.worker.executors.python import SUCCEEDED_WITH_NOTHING, context_argument, succeeded
from foliot.worker.executors.task_errors import classify_error_off_loop
from foliot.worker.identity import WorkerIdentity


class RunLost(Exception):
    """The run was given to another worker, or cancelled, before it was finished."""


def in_a_transaction(
    function: Function,
    *,
    store: Store,
    identity: WorkerIdentity,
    limit_seconds: float,
    result_max_bytes: int,
    signature: Signature | None = None,
    refuse: Refuse = fail_at_once,
) -> Executor:
    signature = signature or Signature(function)

    async def execute(arguments: dict[str, Any], context: Context) -> Attempted:
        async with store.database.transaction(statement_seconds=limit_seconds, idle_seconds=limit_seconds) as session:
            context.connection = session
            attempted = await _called(session, signature, arguments, context, result_max_bytes)
            if attempted.ending is not Ending.SUCCEEDED:
                raise AttemptFailed(attempted)
            done = Outcome(context.run_id, context.token, RunState.SUCCEEDED, result=attempted.result)
            # Finishing locks the run. A worker that freezes here must not hold that lock for the task's whole timeout.
            if not await store.database.in_its_end(
                session, partial(store.outcomes.finish_in, session, identity.id, done)
            ):
                raise RunLost(f"run {context.run_id} no longer belongs to this worker: its effect is rolled back")
        return Attempted(Ending.COMMITTED)

    async def execute_or_fail(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            arguments = signature.bind(payload)
        except Invalid as error:
            return await refuse(payload, misfit(error))
        try:
            return await execute(arguments, context)
        except AttemptFailed as failure:
            return failure.attempted

    return execute_or_fail


async def _called(
    session: Any, signature: Signature, arguments: dict[str, Any], context: Context, result_max_bytes: int
) -> Attempted:
    try:
        result = await signature.call(**arguments, **context_argument(signature.function, context))
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        if leaves_session_unusable(error):
            session.terminate()
        # The task's error object must not pass through the code that ends the transaction.
        return await classify_error_off_loop(error)
    return SUCCEEDED_WITH_NOTHING if result is None else succeeded(result, result_max_bytes)


class AttemptFailed(Exception):
    """Carries a failure out of the transaction, which rolls it back."""

    def __init__(self, attempted: Attempted) -> None:
        super().__init__()
        self.attempted = attempted
