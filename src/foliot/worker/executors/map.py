"""The built-in task `map`: turns its run into one child run per item, or per chunk of items.

The children are stored in one transaction with the end of the attempt, fenced by its token. The run then waits for
them. Items may be the result of an earlier step, so a map always expands on a worker.
"""

from __future__ import annotations

from typing import Any

import msgspec

from foliot.errors import Invalid
from foliot.model.map import CAPACITY, ITEMS_MAX, MapPayload
from foliot.model.namespace import Namespace
from foliot.model.outcome import Attempted, Ending
from foliot.model.payloads import payload_of
from foliot.model.priority import aging_microseconds
from foliot.sdk.context import Context
from foliot.store.store import Store
from foliot.store.workflows import Family
from foliot.worker.executors.base import Executor, invalid_payload
from foliot.worker.executors.workflow import NOT_EXPANDED, with_declared
from foliot.worker.identity import WorkerIdentity

NO_ITEMS = '{"succeeded":0,"failed":0,"cancelled":0,"skipped":0,"results":[]}'


def map_items(store: Store, namespace: Namespace, identity: WorkerIdentity, aging_seconds: float) -> Executor:
    aging = aging_microseconds(aging_seconds)

    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            asked = payload_of(payload, MapPayload)
            asked = with_declared(asked, await store.workers.list_tasks(namespace))
            queue = asked.queue or ""
            family = family_of(asked, queue, context, aging, namespace)
        except Invalid as error:
            return invalid_payload(error)
        if family.total == 0:
            return Attempted(Ending.SUCCEEDED, result=NO_ITEMS)
        if not await store.workflows.expand_map(context.run_id, context.token, identity.id, family):
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
        raise Invalid(f"{field}: no step {key!r} has a result", field=field)
    found = context.upstream[key]
    if isinstance(found, dict) and "results" in found:
        # The result of another map.
        found = found["results"]
    if not isinstance(found, list):
        raise Invalid(f"{field}: the result of {key!r} is not a list but {type(found).__name__}", field=field)
    return found
