"""`/v1/ids/{prefix}`: finds runs, workflows and recurring jobs by the beginning of an id."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import run_name
from foliot.api.requests.idempotency import answered
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.errors import Invalid
from foliot.model.ids import PREFIX_MIN, id_range
from foliot.model.namespace import bare
from foliot.model.payloads import WORKFLOW_TASK
from foliot.model.roles import Permission
from foliot.model.states import RunState, status_of
from foliot.store.ids import FoundId
from foliot.store.store import Store

SHOWN_MAX = 10
SCANNED_MAX = 500
"""The number of ids of each kind that a search reads, those of other namespaces included."""


class IdShown(msgspec.Struct, frozen=True):
    id: UUID
    kind: Literal["run", "workflow", "job"]
    name: str | None
    task: str
    status: str
    created_at: datetime


class IdList(msgspec.Struct, frozen=True):
    items: list[IdShown]
    more: bool
    """Further ids may begin so."""


def ids_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["explain"], route_class=PermissionRoute)

    @requires(Permission.VIEW)
    async def find_ids(prefix: str, namespace: Within) -> Response:
        """Finds runs, workflows and recurring jobs whose ids begin with this prefix: 10 at most, oldest first."""
        found_range = id_range(prefix)
        if found_range is None:
            raise Invalid(
                f"prefix: {prefix!r} is not the beginning of an id: give at least {PREFIX_MIN} of its digits",
                field="prefix",
            )
        found = await store.ids.find_ids(*found_range, SCANNED_MAX)
        ours = [one for one in found if namespace.owns(one.queue)]
        is_cut = len(found) >= SCANNED_MAX or len(ours) > SHOWN_MAX
        return answered(IdList([shown(one) for one in ours[:SHOWN_MAX]], is_cut))

    router.add_api_route(
        "/v1/ids/{prefix}", find_ids, methods=["GET"], openapi_extra=described(200, IdList, problems=(422, 503))
    )
    return router


def shown(found: FoundId) -> IdShown:
    task = bare(found.task)
    if found.kind == "job":
        return IdShown(found.id, "job", bare(found.name or ""), task, found.state, found.created_at)
    status = status_of(RunState(found.state), 0)
    kind: Literal["run", "workflow"] = "workflow" if task == WORKFLOW_TASK else "run"
    return IdShown(found.id, kind, run_name(found.name, found.job_id), task, status, found.created_at)
