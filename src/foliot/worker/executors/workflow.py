"""The built-in tasks `workflow` and `map`: each turns its run into other runs.

A workflow becomes its steps, a map one child run per item, or per chunk of items. The run then waits for its children,
and the store settles it when they end. Most workflows come through the API, which stores their steps at once; the task
`workflow` expands workflows that a schedule fires and workflows that are steps of others. The items of a map may be the
result of an earlier step, so a map always expands here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID

from foliot.errors import Invalid
from foliot.model.namespace import Namespace
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.context import Context
from foliot.submission.child_runs import Expanded, Expanding
from foliot.worker.backend import ChildRuns
from foliot.worker.executors.base import Executor, invalid_payload
from foliot.worker.identity import WorkerIdentity

Expand = Callable[[Namespace, UUID, Expanding, Mapping[str, Any]], Awaitable[Expanded]]
# The run was cancelled meanwhile. If it no longer belongs to this worker, this outcome is refused too.
NOT_EXPANDED = Attempted(
    Ending.CANCELLED, reason="cancelled", error=error_of("Cancelled", "cancelled before its children were stored")
)
NO_ITEMS = '{"succeeded":0,"failed":0,"cancelled":0,"skipped":0,"results":[]}'
OUTCOMES = {
    Expanded.STORED: Attempted(Ending.EXPANDED),
    Expanded.EMPTY: Attempted(Ending.SUCCEEDED, result=NO_ITEMS),
    Expanded.LOST: NOT_EXPANDED,
}


def workflow(child_runs: ChildRuns, namespace: Namespace, identity: WorkerIdentity) -> Executor:
    return _expanding(child_runs.expand_workflow, namespace, identity)


def map_items(child_runs: ChildRuns, namespace: Namespace, identity: WorkerIdentity) -> Executor:
    return _expanding(child_runs.expand_map, namespace, identity)


def _expanding(expand: Expand, namespace: Namespace, identity: WorkerIdentity) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        upstream = dict(context.upstream)
        attempt = Expanding(context.run_id, context.token, context.stored_tick, context.traceparent, upstream)
        try:
            return OUTCOMES[await expand(namespace, identity.id, attempt, payload)]
        except Invalid as error:
            return invalid_payload(error)

    return execute
