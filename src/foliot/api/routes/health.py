"""`/healthz`: the process answers. `/readyz`: PostgreSQL accepts its writes, too."""

from __future__ import annotations

import asyncio

import msgspec
from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from foliot.api.openapi.operations import described
from foliot.api.problems import problem
from foliot.api.security.permissions import PermissionRoute, requires
from foliot.model.roles import Permission
from foliot.store.store import Store

READY_SECONDS = 2.0


class Health(msgspec.Struct, frozen=True):
    status: str


def health_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["health"], route_class=PermissionRoute)

    @router.get("/healthz", openapi_extra=described(200, Health))
    @requires(Permission.NONE)
    async def healthz() -> Response:
        """Reports that the process answers."""
        return JSONResponse({"status": "ok"})

    @router.get("/readyz", openapi_extra=described(200, Health))
    @requires(Permission.NONE)
    async def readyz() -> Response:
        """Reports whether PostgreSQL answers and accepts writes; otherwise 503."""
        try:
            async with asyncio.timeout(READY_SECONDS):
                can_write = await store.can_write()
        except Exception:
            return problem(503, "store_unavailable", "PostgreSQL does not answer")
        if not can_write:
            return problem(503, "store_unavailable", "PostgreSQL is read-only here")
        return JSONResponse({"status": "ready"})

    return router
