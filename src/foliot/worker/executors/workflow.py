"""The built-in tasks `workflow` and `map`: an attempt that turns its own run into others, and is over.

What it becomes is stored in one transaction with the end of the attempt, fenced by its token. From there on the run
waits for its children; what follows from their ends is settled by the store. Most workflows come in through the API,
which stores their steps at once: the tasks are for those that a schedule fires, for workflows that are steps of others,
and for maps, whose items may be the result of another step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from foliot.errors import Invalid
from foliot.events import RunsSubmitted
from foliot.model.namespace import Namespace
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.model.payloads import payload_of
from foliot.model.run_request import RunRequest
from foliot.model.workflow import Workflow, check, plan
from foliot.sdk.context import Context
from foliot.store.store import Store
from foliot.store.workers import DeclaredTask
from foliot.submission.known_tasks import unknown_task, with_tags
from foliot.worker.executors.base import Executor, invalid_payload

A = TypeVar("A", bound=RunRequest)
# It was asked to end meanwhile; or is not ours any more, and then this is refused like everything else that we say of
# it.
NOT_EXPANDED = Attempted(
    Ending.CANCELLED, reason="cancelled", error=error_of("Cancelled", "asked to end before it was made of others")
)


def workflow(store: Store, namespace: Namespace, worker_id: Callable[[], UUID]) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            asked = payload_of(payload, Workflow)
            known = await store.workers.list_tasks(namespace)
            steps = [with_declared(step, known) for step in check(asked)]
        except Invalid as error:
            return invalid_payload(error)
        queues = await store.workflows.expand_workflow(
            context.run_id, context.token, worker_id(), plan(steps), asked.on_failure, namespace
        )
        if queues is None:
            return NOT_EXPANDED
        store.events.emit(RunsSubmitted(len(steps)))
        store.hints.send(queues)
        return Attempted(Ending.EXPANDED)

    return execute


def with_declared(asked: A, known: Mapping[str, DeclaredTask]) -> A:
    """The step, or the items of a map, with what their task declares, where they are silent themselves."""
    task = asked.task_name()
    if task not in known and asked.queue is not None:
        # It may become known before it is its turn; the queue says where it waits for that.
        return asked
    if task not in known:
        raise unknown_task(task, known)
    declared = known[task]
    return msgspec.structs.replace(with_tags(asked, declared), queue=asked.queue or declared.queue)
