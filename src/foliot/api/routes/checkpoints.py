"""`GET /v1/runs/{id}/checkpoints`: what a durable function has recorded."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.requests.pages import page_size
from foliot.api.requests.parameters import run_id_of
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.errors import NotFound
from foliot.model.checkpoint import Kind, check_checkpoint_name
from foliot.model.roles import Permission
from foliot.store.checkpoints import CheckpointItem
from foliot.store.lookup import find_run
from foliot.store.store import Store


class CheckpointShown(msgspec.Struct, frozen=True):
    name: str
    kind: Kind
    status: Literal["done", "failed", "waiting"]
    """failed: a wait that ended with an error, which the function got."""
    function: str | None
    """The qualified name of the step's function, or the task that was called."""
    attempt: int
    """The attempt that recorded it."""
    started_at: datetime
    finished_at: datetime | None
    until: datetime | None
    """The end of a sleep, or the time limit of a wait for a signal."""
    run_id: UUID | None
    """The run that was called."""
    result: str | None
    """The beginning of the result's JSON text."""
    result_bytes: int | None
    error: Any
    is_unused: bool
    """The function ended without asking for it: was it renamed or removed in the code?"""


class CheckpointPage(msgspec.Struct, frozen=True):
    items: list[CheckpointShown]
    next: str | None


def checkpoints_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["runs"], route_class=PermissionRoute)
    lists = described(200, CheckpointPage, problems=(404, 422, 503))

    @router.get("/v1/runs/{reference}/checkpoints", openapi_extra=lists)
    @requires(Permission.VIEW)
    async def list_checkpoints(reference: str, namespace: Within, after: str = "", limit: int = 50) -> Response:
        """Lists the recorded steps and waits of a durable function, in the order in which they began."""
        run_id, limit = run_id_of(reference), page_size(limit)
        if after:
            check_checkpoint_name(after)
        if await find_run(store, namespace, run_id) is None:
            raise NotFound(f"there is no run {reference!r}")
        found = await store.checkpoints.list_checkpoints(run_id, after=after or None, limit=limit + 1)
        items = [checkpoint_shown(item) for item in found[:limit]]
        page = CheckpointPage(items, items[-1].name if len(found) > limit else None)
        return Response(msgspec.json.encode(page), media_type="application/json")

    return router


def checkpoint_shown(item: CheckpointItem) -> CheckpointShown:
    is_waiting = item.finished_at is None
    return CheckpointShown(
        name=item.name,
        kind=item.kind,
        status="waiting" if is_waiting else "failed" if item.error is not None else "done",
        function=item.function,
        attempt=item.attempt,
        started_at=item.started_at,
        finished_at=item.finished_at,
        until=item.due_at,
        run_id=item.child_id,
        result=item.result,
        result_bytes=item.result_bytes,
        error=item.error,
        is_unused=item.is_unused,
    )
