"""Workers as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from foliot.errors import NotFound
from foliot.store.gone_workers import GoneWorker
from foliot.store.workers import LATE_SHARE, WorkerRun, WorkerView


class WorkerShown(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    health: Literal["healthy", "late", "draining", "gone"]
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
    runs: list[WorkerRun] | None = None
    """The runs in its slots, without those of other namespaces; null unless `runs=1`."""


class WorkerDetails(WorkerShown, frozen=True, kw_only=True):
    gone: GoneWorker | None = None
    """Of a worker that has left or died within a day."""


def shown(worker: WorkerView, runs: list[WorkerRun] | None = None) -> WorkerShown:
    return WorkerShown(**_fields(worker), runs=runs)


def details(worker: WorkerView, runs: list[WorkerRun]) -> WorkerDetails:
    return WorkerDetails(**_fields(worker), runs=runs)


def details_of_gone(worker: GoneWorker) -> WorkerDetails:
    return WorkerDetails(
        id=worker.id,
        name=worker.name,
        health="gone",
        running=0,
        left_running=0,
        slots=sum(worker.queues.values()),
        queues=dict(worker.queues),
        labels=dict(worker.labels),
        tasks=[],
        started_at=worker.started_at,
        last_beat_at=worker.gone_at,
        draining_at=None,
        gone=worker,
    )


def _fields(worker: WorkerView) -> dict[str, Any]:
    is_late = worker.silent_seconds > LATE_SHARE * worker.ttl_seconds
    return {
        "id": worker.id,
        "name": worker.name,
        "health": "late" if is_late else "draining" if worker.draining_at else "healthy",
        "running": worker.running,
        "left_running": worker.left_running,
        "slots": sum(worker.queues.values()),
        "queues": worker.queues,
        "labels": worker.labels,
        "tasks": worker.tasks,
        "started_at": worker.started_at,
        "last_beat_at": worker.beat_at,
        "draining_at": worker.draining_at,
    }


def id_of(reference: str) -> UUID:
    try:
        return UUID(reference)
    except ValueError:
        raise unknown_worker(reference) from None


def unknown_worker(reference: str) -> NotFound:
    return NotFound(f"there is no live worker {reference!r}")
