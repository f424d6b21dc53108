"""The built-in tasks `workflow` and `map`: an attempt that turns its own run into others, and is over.

What it becomes is stored in one transaction with the end of the attempt, fenced by its token. From there on the run waits for its children;
what follows from their ends is settled by the store. Most workflows come in through the API, which stores their steps at once: the tasks
are for those that a schedule fires, for workflows that are steps of others, and for maps, whose items may be the result of another step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import msgspec

from foliot.config import did_you_mean
from foliot.errors import Invalid, UnknownTask
from foliot.model.namespace import Namespace
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.model.payloads import WaitPayload, payload_of
from foliot.model.priority import aging_microseconds
from foliot.model.workflow import CAPACITY, ITEMS_MAX, MapPayload, Step, Workflow, check, plan
from foliot.sdk.context import Context
from foliot.store.store import Store
from foliot.store.workflows import Family
from foliot.worker.executors.base import Executor, refused

# It was asked to end meanwhile; or is not ours any more, and then this is refused like everything else that we say of it.
NOT_EXPANDED = Attempted(Ending.CANCELLED, reason="cancelled", error=error_of("Cancelled", "asked to end before it was made of others"))
NO_ITEMS = '{"succeeded":0,"failed":0,"cancelled":0,"skipped":0,"results":[]}'


def workflow(store: Store, namespace: Namespace, worker_id: Callable[[], UUID]) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            asked = payload_of(payload, Workflow)
            steps = await with_queues(check(asked), store, namespace)
        except Invalid as error:
            return refused(error)
        queues = await store.workflows.expand_workflow(context.run_id, context.token, worker_id(), plan(steps), asked.on_failure, namespace)
        if queues is None:
            return NOT_EXPANDED
        store.hints.send(queues)
        return Attempted(Ending.EXPANDED)

    return execute


def map_items(store: Store, namespace: Namespace, worker_id: Callable[[], UUID], aging_seconds: float) -> Executor:
    aging = aging_microseconds(aging_seconds)

    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            asked = payload_of(payload, MapPayload)
            queue = asked.queue or known_queue(asked.task_name(), await store.workers.list_tasks(namespace))
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


async def with_queues(steps: tuple[Step, ...], store: Store, namespace: Namespace) -> tuple[Step, ...]:
    known = await store.workers.list_tasks(namespace)
    return tuple(msgspec.structs.replace(step, queue=step.queue or known_queue(step.task_name(), known)) for step in steps)


def known_queue(task: str, known: Mapping[str, str]) -> str:
    if task not in known:
        raise UnknownTask(f"task: no worker knows a task named {task!r}{did_you_mean(task, known)}", field="task")
    return known[task]


async def wait(payload: dict[str, Any], context: Context) -> Attempted:
    """The built-in task `wait`: when it runs, what was waited for has come, an instant or a signal. Its result is what the signal said."""
    try:
        payload_of(payload, WaitPayload)
    except Invalid as error:
        return refused(error)
    return Attempted(Ending.SUCCEEDED, result=None if context.signal is None else msgspec.json.encode(context.signal).decode())
