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

from foliot.config import did_you_mean
from foliot.errors import Invalid, UnknownTask
from foliot.events import RunsSubmitted
from foliot.model.map import CAPACITY, ITEMS_MAX, MapPayload
from foliot.model.namespace import Namespace
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.model.payloads import WaitPayload, payload_of
from foliot.model.priority import aging_microseconds
from foliot.model.run_request import RunRequest
from foliot.model.workflow import Workflow, check, plan
from foliot.sdk.context import Context
from foliot.store.store import Store
from foliot.store.workers import DeclaredTask
from foliot.store.workflows import Family
from foliot.worker.executors.base import Executor, refused

A = TypeVar("A", bound=RunRequest)
# It was asked to end meanwhile; or is not ours any more, and then this is refused like everything else that we say of
# it.
NOT_EXPANDED = Attempted(
    Ending.CANCELLED, reason="cancelled", error=error_of("Cancelled", "asked to end before it was made of others")
)
NO_ITEMS = '{"succeeded":0,"failed":0,"cancelled":0,"skipped":0,"results":[]}'


def workflow(store: Store, namespace: Namespace, worker_id: Callable[[], UUID]) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            asked = payload_of(payload, Workflow)
            known = await store.workers.list_tasks(namespace)
            steps = [with_declared(step, known) for step in check(asked)]
        except Invalid as error:
            return refused(error)
        queues = await store.workflows.expand_workflow(
            context.run_id, context.token, worker_id(), plan(steps), asked.on_failure, namespace
        )
        if queues is None:
            return NOT_EXPANDED
        store.events.emit(RunsSubmitted(len(steps)))
        store.hints.send(queues)
        return Attempted(Ending.EXPANDED)

    return execute


def map_items(store: Store, namespace: Namespace, worker_id: Callable[[], UUID], aging_seconds: float) -> Executor:
    aging = aging_microseconds(aging_seconds)

    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            asked = payload_of(payload, MapPayload)
            asked = with_declared(asked, await store.workers.list_tasks(namespace))
            queue = asked.queue or ""
            family = family_of(asked, queue, context, aging, namespace)
        except Invalid as error:
            return refused(error)
        if family.total == 0:
            return Attempted(Ending.SUCCEEDED, result=NO_ITEMS)
        if not await store.workflows.expand_map(context.run_id, context.token, worker_id(), family):
            return NOT_EXPANDED
        store.hints.send([namespace.qualified(queue)])
        return Attempted(Ending.EXPANDED)

    return execute


def family_of(asked: MapPayload, queue: str, context: Context, aging: int, namespace: Namespace) -> Family:
    over = asked.map
    items = over.items if over.result_of is None else result_list(over.result_of, context)
    count = len(items) if items is not None else over.range.count if over.range is not None else 0
    if count > ITEMS_MAX:
        raise Invalid(f"map: {count} items are too many; the most is {ITEMS_MAX}", field="map")
    template = {
        "task": namespace.qualified(asked.task_name()),
        "queue": namespace.qualified(queue),
        "name": asked.name,
        "priority": asked.priority,
        "payload": asked.payload_tree(),
        "options": asked.run_options(namespace),
        "item_name": over.item_name,
        "chunk_size": over.chunk_size,
        "rank_offset": asked.priority * aging,
        "start": over.range.start if over.range else 0,
        "step": over.range.step if over.range else 1,
        "count": count,
    }
    return Family(
        "map",
        over.on_failure,
        total=-(-count // over.chunk_size),
        made=0,
        capacity=over.max_concurrency or CAPACITY,
        template=msgspec.json.encode(template).decode(),
        items=None if items is None else msgspec.json.encode(items).decode(),
    )


def result_list(key: str, context: Context) -> list[Any]:
    field = "map.result_of"
    if key not in context.upstream:
        raise Invalid(f"{field}: there is no result of a step {key!r}", field=field)
    found = context.upstream[key]
    if isinstance(found, dict) and "results" in found:
        # Of another map.
        found = found["results"]
    if not isinstance(found, list):
        raise Invalid(f"{field}: the result of {key!r} is no list but {type(found).__name__}", field=field)
    return found


def with_declared(asked: A, known: Mapping[str, DeclaredTask]) -> A:
    """The step, or the items of a map, with what their task declares, where they are silent themselves."""
    task = asked.task_name()
    if task not in known and asked.queue is not None:
        # It may become known before it is its turn; the queue says where it waits for that.
        return asked
    if task not in known:
        raise UnknownTask(f"task: no worker knows a task named {task!r}{did_you_mean(task, known)}", field="task")
    declared = known[task]
    return msgspec.structs.replace(
        asked, queue=asked.queue or declared.queue, tags=declared.tags if asked.tags is None else asked.tags
    )


async def wait(payload: dict[str, Any], context: Context) -> Attempted:
    """The built-in task `wait`: when it runs, what was waited for has come, an instant or a signal. Its result is what
    the signal said."""
    try:
        payload_of(payload, WaitPayload)
    except Invalid as error:
        return refused(error)
    return Attempted(
        Ending.SUCCEEDED, result=None if context.signal is None else msgspec.json.encode(context.signal).decode()
    )
