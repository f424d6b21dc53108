"""`/v1/dead-letters/replays`: replays that begin with one run, the canary."""

from __future__ import annotations

from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.requests.pages import page_size
from foliot.api.requests.parameters import text_of
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.errors import NotFound
from foliot.model.namespace import Namespace
from foliot.model.roles import Permission
from foliot.store.replays import Replay
from foliot.store.store import Store


class ReplayList(msgspec.Struct, frozen=True):
    items: list[Replay]


def replays_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["dead letters"], route_class=PermissionRoute)
    shows = described(200, Replay, problems=(404, 503))

    @router.get("/v1/dead-letters/replays", openapi_extra=described(200, ReplayList, problems=(422, 503)))
    @requires(Permission.VIEW)
    async def list_replays(namespace: Within, group: str = "", limit: int = 50) -> Response:
        """Lists the replays with a canary, the latest first, without the outcomes of their runs."""
        found = await store.replays.list_replays(namespace, text_of(group, "group"), page_size(limit))
        return json_response(ReplayList(found))

    @router.get("/v1/dead-letters/replays/{reference}", openapi_extra=shows)
    @requires(Permission.VIEW)
    async def get_replay(reference: str, namespace: Within) -> Response:
        """Shows how far a replay with a canary is, and how its runs ended."""
        return json_response(await _found(namespace, reference))

    @router.post("/v1/dead-letters/replays/{reference}/stop", openapi_extra=shows)
    @requires(Permission.OPERATE)
    async def stop_replay(reference: str, caller: Calling) -> Response:
        """Stops a replay: no more of its dead letters are replayed. Runs that have been created go on. Stopping an
        ended replay changes nothing."""
        replay = await _found(caller.namespace, reference)
        await store.replays.stop_replay(caller.namespace, replay.id, f"{caller.name} stopped it")
        return json_response(await _found(caller.namespace, reference))

    async def _found(namespace: Namespace, reference: str) -> Replay:
        try:
            found = await store.replays.find_replay(namespace, UUID(reference))
        except ValueError:
            found = None
        if found is None:
            raise NotFound(f"there is no replay {reference!r}")
        return found

    return router
