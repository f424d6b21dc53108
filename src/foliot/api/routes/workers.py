"""`/v1/workers`: the workers, their load and their health."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.errors import NotFound
from foliot.model.permissions import Permission
from foliot.store.hints import worker_topic
from foliot.store.store import Store
from foliot.store.workers import WorkerView

# The part of its lease after which a silent worker is late. A worker renews its lease three times in that time.
LATE_SHARE = 0.5


class WorkerShown(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    health: Literal["healthy", "late", "draining"]
    """late: it has sent no heartbeat for half its lease."""
    running: int
    left_running: int
    """Synchronous functions that still run after their attempts ended; each takes a slot."""
    slots: int
    queues: dict[str, int]
    """The slots for each queue."""
    labels: dict[str, str]
    tasks: list[str]
    started_at: datetime
    last_beat_at: datetime
    draining_at: datetime | None


class WorkerList(msgspec.Struct, frozen=True):
    items: list[WorkerShown]


def workers_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["workers"], route_class=PermissionRoute)

    @router.get("/v1/workers", openapi_extra=described(200, WorkerList, problems=(503,)))
    @requires(Permission.VIEW)
    async def list_workers(namespace: Within) -> Response:
        """Lists the live workers by name."""
        return _answer(WorkerList([shown(worker) for worker in await store.workers.list_workers(namespace)]))

    @router.post("/v1/workers/{reference}/drain", openapi_extra=described(200, WorkerShown, problems=(404, 503)))
    @requires(Permission.DRAIN)
    async def drain_worker(reference: str, namespace: Within) -> Response:
        """Drains a worker: it finishes its attempts and claims no more runs."""
        try:
            worker_id = UUID(reference)
        except ValueError:
            raise _unknown(reference) from None
        if not await store.workers.list_workers(namespace, worker_id) or not await store.workers.drain_worker(
            worker_id
        ):
            raise _unknown(reference)
        store.hints.send([worker_topic(worker_id)])
        found = await store.workers.list_workers(namespace, worker_id)
        if not found:
            raise _unknown(reference)
        return _answer(shown(found[0]))

    return router


def shown(worker: WorkerView) -> WorkerShown:
    is_late = worker.silent_seconds > LATE_SHARE * worker.ttl_seconds
    return WorkerShown(
        id=worker.id,
        name=worker.name,
        health="late" if is_late else "draining" if worker.draining_at else "healthy",
        running=worker.running,
        left_running=worker.left_running,
        slots=sum(worker.queues.values()),
        queues=worker.queues,
        labels=worker.labels,
        tasks=worker.tasks,
        started_at=worker.started_at,
        last_beat_at=worker.beat_at,
        draining_at=worker.draining_at,
    )


def _unknown(reference: str) -> NotFound:
    return NotFound(f"there is no live worker {reference!r}")


def _answer(body: object) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
