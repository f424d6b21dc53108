"""`/v1/views`: saved views of the web UI's lists, private or shared in the namespace."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import read_json
from foliot.api.requests.idempotency import answered
from foliot.api.requests.parameters import text_of
from foliot.api.security.permissions import Calling, PermissionRoute, requires
from foliot.errors import Conflict, Forbidden
from foliot.model.roles import Caller, Permission
from foliot.model.text_patterns import RECURRING_NAME
from foliot.store.store import Store
from foliot.store.views import MOST, SHARED, View

NAME_MAX = 100
PAGE = r"^[a-z-]{1,40}$(?!\n)"
VIEW_NAME = {**RECURRING_NAME, "maxLength": NAME_MAX}


class ViewRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    page: Annotated[str, Meta(pattern=PAGE, description="The list, such as `runs` or `jobs`.")]
    name: Annotated[str, Meta(min_length=1, max_length=NAME_MAX, extra_json_schema=VIEW_NAME)]
    search: Annotated[str, Meta(max_length=2000, description="The query string of the page, such as `q=state:failed`.")]
    is_shared: bool = False
    """Shows it to everybody in the namespace. This needs the permission to operate."""


class ViewShown(msgspec.Struct, frozen=True):
    page: str
    name: str
    search: str
    is_shared: bool
    updated_at: datetime
    updated_by: str


class ViewList(msgspec.Struct, frozen=True):
    items: list[ViewShown]


decoder = msgspec.json.Decoder(ViewRequest)
EXAMPLES = {
    "failures of today": {"page": "runs", "name": "Failed today", "search": "q=state:failed since:1d"},
    "for everybody": {
        "page": "runs",
        "name": "Mail that waits",
        "search": "q=queue:mail state:ready",
        "is_shared": True,
    },
}


class ViewRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["overview"], route_class=PermissionRoute)
        add, path = self.router.add_api_route, "/v1/views"
        add(path, self.list_views, methods=["GET"], openapi_extra=described(200, ViewList))
        puts = described(200, ViewShown, body=ViewRequest, examples=EXAMPLES, problems=(409,))
        add(path, self.put_view, methods=["PUT"], openapi_extra=puts)
        add(path, self.delete_view, methods=["DELETE"], status_code=204, openapi_extra=described(204, problems=(422,)))

    @requires(Permission.VIEW)
    async def list_views(self, caller: Calling) -> Response:
        """Lists your own saved views and the shared ones of the namespace, by page and name."""
        found = await self._store.views.list_views(caller.namespace, owner_of(caller))
        return answered(ViewList([shown(view) for view in found]))

    @requires(Permission.VIEW, reading=False)
    async def put_view(self, request: Request, caller: Calling) -> Response:
        """Saves a view of a list, or replaces the one with this page and name. You can have 200, and a namespace 200
        shared ones."""
        asked = await read_json(request, decoder, max_bytes=self._body_max_bytes)
        view = await self._store.views.put_view(
            caller.namespace,
            owner(caller, is_shared=asked.is_shared),
            page=asked.page,
            name=asked.name,
            search=asked.search,
            by=caller.name,
        )
        if view is None:
            raise Conflict(f"name: there are {MOST} saved views already; delete one first")
        return answered(shown(view))

    @requires(Permission.VIEW, reading=False)
    async def delete_view(self, caller: Calling, page: str = "", name: str = "", shared: bool = False) -> Response:
        """Deletes a saved view, if there is one with this page and name."""
        await self._store.views.delete_view(
            caller.namespace,
            owner(caller, is_shared=shared),
            page=text_of(page, "page") or "",
            name=text_of(name, "name") or "",
        )
        return Response(status_code=204)


def owner(caller: Caller, *, is_shared: bool) -> str:
    if not is_shared:
        return owner_of(caller)
    if not caller.may(Permission.OPERATE):
        raise Forbidden("is_shared: a view for everybody in the namespace needs the permission to operate")
    return SHARED


def owner_of(caller: Caller) -> str:
    """A token that replaces another under its name keeps the views."""
    return f"{caller.scope}/{caller.name}"


def shown(view: View) -> ViewShown:
    return ViewShown(view.page, view.name, view.search, view.is_shared, view.updated_at, view.updated_by)
