"""The built-in task `workflow`: turns its run into the steps of the workflow.

The steps are stored in one transaction with the end of the attempt, fenced by its token. The run then waits for its
children, and the store settles it when they end. Most workflows come through the API, which stores their steps at once;
this task expands workflows that a schedule fires and workflows that are steps of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

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
from foliot.worker.identity import WorkerIdentity

A = TypeVar("A", bound=RunRequest)
# The run was cancelled meanwhile. If it no longer belongs to this worker, this outcome is refused too.
NOT_EXPANDED = Attempted(
    Ending.CANCELLED, reason="cancelled", error=error_of("Cancelled", "cancelled before its children were stored")
)


def workflow(store: Store, namespace: Namespace, identity: WorkerIdentity) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            asked = payload_of(payload, Workflow)
            known = await store.workers.list_tasks(namespace)
            steps = [with_declared(step, known) for step in check(asked)]
        except Invalid as error:
            return invalid_payload(error)
        queues = await store.workflows.expand_workflow(
            context.run_id, context.token, identity.id, plan(steps), asked.on_failure, namespace
        )
        if queues is None:
            return NOT_EXPANDED
        store.events.emit(RunsSubmitted(len(steps)))
        store.hints.send(queues)
        return Attempted(Ending.EXPANDED)

    return execute


def with_declared(asked: A, known: Mapping[str, DeclaredTask]) -> A:
    """Fills in the queue and tags that the task declares, where the step or map sets none."""
    task = asked.task_name()
    if task not in known and asked.queue is not None:
        # A worker may announce the task before the step is ready. It waits in its queue until then.
        return asked
    if task not in known:
        raise unknown_task(task, known)
    declared = known[task]
    return msgspec.structs.replace(with_tags(asked, declared), queue=asked.queue or declared.queue)
