"""`/v1/heartbeats`: signs of life of programs outside of Foliot, which the rules of alerts wait for."""

from __future__ import annotations

from datetime import datetime

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.requests.idempotency import answered
from foliot.api.requests.names import stored_name
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.errors import NotFound
from foliot.model.namespace import bare
from foliot.model.roles import Permission
from foliot.store.store import Store


class HeartbeatShown(msgspec.Struct, frozen=True):
    name: str
    at: datetime | None
    """When it came last. Null: never."""
    by: str | None
    number: int


class HeartbeatList(msgspec.Struct, frozen=True):
    items: list[HeartbeatShown]


def heartbeats_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["alerts"], route_class=PermissionRoute)

    @router.get("/v1/heartbeats", openapi_extra=described(200, HeartbeatList))
    @requires(Permission.VIEW)
    async def list_heartbeats(namespace: Within) -> Response:
        """Lists the heartbeats that alert rules wait for, by name."""
        found = await store.alert_rules.list_heartbeats(namespace)
        return answered(
            HeartbeatList(
                [HeartbeatShown(bare(one.name), one.at, one.by, one.number) if one.number
                 else HeartbeatShown(bare(one.name), None, None, 0) for one in found]
            )
        )  # fmt: skip

    @router.post("/v1/heartbeats/{name}", status_code=204, openapi_extra=described(204, problems=(404, 422)))
    @requires(Permission.SUBMIT)
    async def send_heartbeat(name: str, caller: Calling) -> Response:
        """Notes a sign of life. An alert rule with the condition `heartbeat_silent` must wait for it."""
        if not await store.alert_rules.beat_heartbeat(stored_name(caller.namespace, name), caller.name):
            raise NotFound(f"no alert rule waits for the heartbeat {name!r}; create one with heartbeat_silent first")
        return Response(status_code=204)

    return router
