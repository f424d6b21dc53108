"""The short way to handlers that want nothing but the request, at paths without parameters: to creating a job, above
all.

The framework tries routes in turn, looks for what a handler asks for, and keeps stacks for clearing up afterwards. For
a job that costs twice as much as all that Foliot itself does to take it in. Such a handler has no use for any of it: it
is found with one look and called at once. It is the route's own guarded handler, so that permissions, the audit record
and problem documents are those of the route. Everything else goes the framework's way.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from foliot.api.problems import serve
from foliot.api.security.permissions import Handler, PermissionRoute


class FastPath:
    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute]) -> None:
        """`app` is the framework's."""
        self._app = app
        self._handlers: dict[tuple[str, str], Handler] = {
            (method, route.path): route.get_route_handler()
            for route in routes
            if isinstance(route, PermissionRoute) and route.is_plain and "{" not in route.path
            for method in sorted(route.methods or ())
            if _first_match(routes, method, route.path) is route
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handle = self._handlers.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if handle is None or scope.get("root_path"):
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        await serve(handle(request), request, send)


def _first_match(routes: Sequence[BaseRoute], method: str, path: str) -> BaseRoute | None:
    """The one that the framework would choose."""
    asked = {"type": "http", "method": method, "path": path, "headers": []}
    return next((route for route in routes if route.matches(asked)[0] is Match.FULL), None)
