"""`GET /v1/approvals`: runs that wait for somebody's decision."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import run_name
from foliot.api.requests.pages import page_size
from foliot.api.requests.parameters import id_of
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.model.namespace import bare
from foliot.model.roles import Permission
from foliot.store.approvals import Approval
from foliot.store.store import Store

FIRST_ID = UUID(int=0)
# The waiting runs, of any namespace, that a page reads at most.
SCAN_MAX = 2_000


class ApprovalShown(msgspec.Struct, frozen=True):
    id: UUID
    """The run that waits."""
    name: str | None
    task: str
    queue: str
    since: datetime
    """When it began to wait."""
    until: datetime | None
    """When it stops waiting. Null if it waits until somebody decides."""
    signals: list[str]
    """The names of the signals that a durable function waits for; the first one wakes it."""
    payload: Any
    """Null if it is larger than 20,000 bytes: GET /v1/runs/{id} shows it."""
    payload_bytes: int
    metadata: Any
    tags: list[str]
    workflow_id: UUID | None
    """The workflow or map that it belongs to."""
    workflow: str | None
    """The name of the workflow."""
    step: str | None
    job_id: UUID | None


class ApprovalPage(msgspec.Struct, frozen=True):
    items: list[ApprovalShown]
    next: str | None
    """Pass it as `after` to get the next page. A short or empty page may have a next one."""


def approvals_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["runs"], route_class=PermissionRoute)
    lists = described(200, ApprovalPage, problems=(422, 503))

    @router.get("/v1/approvals", openapi_extra=lists)
    @requires(Permission.VIEW)
    async def list_approvals(namespace: Within, after: str = "", limit: int = 50) -> Response:
        """Lists the runs that wait for a signal, oldest first: steps that somebody approves, and durable functions.
        `POST /v1/runs/{id}/signal` decides."""
        limit = page_size(limit)
        since = id_of(after, "after") if after else FIRST_ID
        page = await store.approvals.list_approvals(namespace, since, limit=limit, scan=max(SCAN_MAX, limit + 1))
        shown = ApprovalPage(
            [approval_shown(item) for item in page.items], str(page.following) if page.following else None
        )
        return Response(msgspec.json.encode(shown), media_type="application/json")

    return router


def approval_shown(item: Approval) -> ApprovalShown:
    return ApprovalShown(
        id=item.id,
        name=run_name(item.name, item.job_id),
        task=bare(item.task),
        queue=bare(item.queue),
        since=item.since or item.created_at,
        until=item.until,
        signals=item.signals or [],
        payload=item.payload,
        payload_bytes=item.payload_bytes or 0,
        metadata=item.metadata,
        tags=item.tags or [],
        workflow_id=item.parent_id,
        workflow=None if item.workflow is None else bare(item.workflow),
        step=item.step,
        job_id=item.job_id,
    )
