"""A run as lists show it."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from foliot.api.openapi.schemas import run_name
from foliot.model.namespace import bare
from foliot.model.states import status_of
from foliot.store.run_lists import RunItem


class RunListed(msgspec.Struct, frozen=True):
    id: UUID
    name: str | None
    status: str
    state: str
    reason: str | None
    task: str
    queue: str
    priority: int
    attempt: int
    worker_id: UUID | None
    job_id: UUID | None
    tick_at: datetime | None
    rerun_of: UUID | None
    rerun_as: UUID | None
    parent_id: UUID | None
    step: str | None
    tags: list[str]
    error: Any
    created_at: datetime
    scheduled_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


def listed(item: RunItem) -> RunListed:
    return RunListed(
        id=item.id,
        name=run_name(item.name, item.job_id),
        status=status_of(item.state, item.attempt),
        state=item.state,
        reason=item.reason,
        task=bare(item.task),
        queue=bare(item.queue),
        priority=item.priority,
        attempt=item.attempt,
        worker_id=item.worker_id,
        job_id=item.job_id,
        tick_at=item.tick_at,
        rerun_of=item.rerun_of,
        rerun_as=item.rerun_as,
        parent_id=item.parent_id,
        step=item.step,
        tags=item.tags,
        error=item.error,
        created_at=item.created_at,
        scheduled_at=item.due_at,
        started_at=item.started_at,
        finished_at=item.finished_at,
    )
