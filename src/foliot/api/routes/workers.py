"""`/v1/workers`: the workers, their load and their health."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.api.worker_views import WorkerDetails, WorkerShown, details, details_of_gone, id_of, shown
from foliot.errors import NotFound
from foliot.model.roles import Permission
from foliot.store.gone_workers import GoneWorker
from foliot.store.store import Store


class WorkerList(msgspec.Struct, frozen=True):
    items: list[WorkerShown]


class GoneWorkerList(msgspec.Struct, frozen=True):
    items: list[GoneWorker]


def workers_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["workers"], route_class=PermissionRoute)

    @router.get("/v1/workers", openapi_extra=described(200, WorkerList, problems=(503,)))
    @requires(Permission.VIEW)
    async def list_workers(namespace: Within, runs: bool = False) -> Response:
        """Lists the live workers by name; with `runs=1`, with what they run now."""
        found = await store.workers.list_workers(namespace)
        held = await store.workers.runs_of_workers(namespace, [one.id for one in found]) if runs and found else {}
        return _answer(WorkerList([shown(one, held.get(one.id, []) if runs else None) for one in found]))

    @router.get("/v1/workers/gone", openapi_extra=described(200, GoneWorkerList, problems=(503,)))
    @requires(Permission.VIEW)
    async def list_gone_workers(namespace: Within) -> Response:
        """Lists the workers that have left or died within a day, the latest first, with what was lost with them."""
        return _answer(GoneWorkerList(await store.gone_workers.list_gone_workers(namespace)))

    @router.get("/v1/workers/{reference}", openapi_extra=described(200, WorkerDetails, problems=(404, 503)))
    @requires(Permission.VIEW)
    async def get_worker(reference: str, namespace: Within) -> Response:
        """Shows a worker with what it runs now, or one that has left or died within a day."""
        worker_id = id_of(reference)
        if found := await store.workers.list_workers(namespace, worker_id):
            held = await store.workers.runs_of_workers(namespace, [worker_id])
            return _answer(details(found[0], held.get(worker_id, [])))
        if gone := await store.gone_workers.list_gone_workers(namespace, worker_id):
            return _answer(details_of_gone(gone[0]))
        raise NotFound(f"there is no worker {reference!r}, and there was none within a day")

    return router


def _answer(body: object) -> Response:
    return json_response(body)
