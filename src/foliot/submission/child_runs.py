"""Turns the run of an attempt into a workflow or a map: its children are stored in one transaction with the end of the
attempt, fenced by its token.

Workers with database access call this themselves. For the others, an API server does.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from foliot.errors import Invalid
from foliot.events import RunsSubmitted
from foliot.model.map import CAPACITY, ITEMS_MAX, MapPayload
from foliot.model.namespace import Namespace
from foliot.model.payloads import payload_of
from foliot.model.priority import aging_microseconds
from foliot.model.rendering import has_templates
from foliot.model.run_request import RunRequest
from foliot.model.tick import StoredTick
from foliot.model.tracing import of_the_run
from foliot.model.workflow import Workflow, check, plan
from foliot.store.store import Store
from foliot.store.workers import DeclaredTask
from foliot.store.workflows import Family, Inherited
from foliot.submission.known_tasks import unknown_task, with_tags

A = TypeVar("A", bound=RunRequest)


class Expanded(StrEnum):
    """How an expansion ended."""

    STORED = "stored"
    EMPTY = "empty"
    """A map without items. Nothing is stored."""
    LOST = "lost"
    """The run was cancelled, or is no longer this worker's. Nothing is stored."""


class Expanding(msgspec.Struct, frozen=True, omit_defaults=True):
    """The attempt whose run gets children."""

    run_id: UUID
    token: int
    tick: StoredTick | None = None
    traceparent: str | None = None
    upstream: dict[str, Any] = {}
    """The results of the steps before it. A map may go over one of them."""


class ChildRuns:
    def __init__(self, store: Store, *, aging_seconds: float) -> None:
        self._store = store
        self._aging = aging_microseconds(aging_seconds)

    async def expand_workflow(
        self, namespace: Namespace, worker_id: UUID, attempt: Expanding, payload: Mapping[str, Any]
    ) -> Expanded:
        """Raises `Invalid` for a payload that is no workflow."""
        asked = payload_of(dict(payload), Workflow)
        known = await self._store.workers.list_tasks(namespace)
        steps = [with_declared(step, known) for step in check(asked)]
        queues = await self._store.workflows.expand_workflow(
            attempt.run_id,
            attempt.token,
            worker_id,
            plan(steps, asked.values()),
            asked.on_failure,
            namespace,
            Inherited(attempt.tick, of_the_run(attempt.run_id, attempt.traceparent)),
        )
        if queues is None:
            return Expanded.LOST
        self._store.events.emit(RunsSubmitted(len(steps)))
        self._store.hints.send(queues)
        return Expanded.STORED

    async def expand_map(
        self, namespace: Namespace, worker_id: UUID, attempt: Expanding, payload: Mapping[str, Any]
    ) -> Expanded:
        """Raises `Invalid` for a payload that is no map."""
        asked = payload_of(dict(payload), MapPayload)
        asked = with_declared(asked, await self._store.workers.list_tasks(namespace))
        queue = asked.queue or ""
        family = family_of(asked, queue, attempt, self._aging, namespace)
        if family.total == 0:
            return Expanded.EMPTY
        if not await self._store.maps.expand_map(attempt.run_id, attempt.token, worker_id, family):
            return Expanded.LOST
        self._store.hints.send([namespace.qualified(queue)])
        return Expanded.STORED


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


def family_of(asked: MapPayload, queue: str, attempt: Expanding, aging: int, namespace: Namespace) -> Family:
    over = asked.map
    items = over.items if over.result_of is None else result_list(over.result_of, attempt.upstream)
    count = len(items) if items is not None else over.range.count if over.range is not None else 0
    if count > ITEMS_MAX:
        raise Invalid(f"map: {count} items are too many; the most is {ITEMS_MAX}", field="map")
    template = {
        "task": namespace.qualified(asked.task_name()),
        "queue": namespace.qualified(queue),
        "name": asked.name,
        "priority": asked.priority,
        "payload": asked.payload_tree(),
        "options": msgspec.structs.replace(
            asked.run_options(namespace),
            tick=attempt.tick,
            traceparent=of_the_run(attempt.run_id, attempt.traceparent),
            item=over.item_name if has_templates(asked.task_name(), asked.templates) else None,
        ),
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


def result_list(key: str, upstream: Mapping[str, Any]) -> list[Any]:
    field = "map.result_of"
    if key not in upstream:
        raise Invalid(f"{field}: no step {key!r} has a result", field=field)
    found = upstream[key]
    if isinstance(found, dict) and "results" in found:
        # The result of another map.
        found = found["results"]
    if not isinstance(found, list):
        raise Invalid(f"{field}: the result of {key!r} is not a list but {type(found).__name__}", field=field)
    return found
