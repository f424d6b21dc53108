"""Takes workers out of service: one, or all with the same labels."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.api.worker_views import WorkerShown, id_of, shown, unknown_worker
from foliot.model.roles import Permission
from foliot.store.hints import worker_topic
from foliot.store.store import Store
from foliot.store.workers import WorkerView


class DrainRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    labels: Annotated[dict[str, str], Meta(min_length=1, max_length=20)]
    """Drains the live workers that have all of these labels."""
    dry_run: bool = False


class DrainAnswer(msgspec.Struct, frozen=True):
    items: list[WorkerShown]
    """The workers with these labels."""
    is_dry_run: bool


drain_decoder = msgspec.json.Decoder(DrainRequest)
DRAINS = {"a rack": {"labels": {"rack": "b7"}}, "dry run": {"labels": {"pool": "gpu"}, "dry_run": True}}


def drains_router(*, store: Store, body_max_bytes: int) -> APIRouter:
    router = APIRouter(tags=["workers"], route_class=PermissionRoute)
    drains = described(200, DrainAnswer, body=DrainRequest, examples=DRAINS, problems=(413, 422, 503))

    @router.post("/v1/workers/drain", openapi_extra=drains)
    @requires(Permission.DRAIN)
    async def drain_workers(request: Request, namespace: Within) -> Response:
        """Drains all workers with these labels: they finish their attempts and claim no more runs."""
        asked = await decoded(await read(request, body_max_bytes), drain_decoder)

        def fits(worker: WorkerView) -> bool:
            return all(worker.labels.get(name) == value for name, value in asked.labels.items())

        found = [one for one in await store.workers.list_workers(namespace) if fits(one)]
        if found and not asked.dry_run:
            ids = {one.id for one in found}
            await store.workers.drain_workers(list(ids))
            store.hints.send([worker_topic(one) for one in ids])
            found = [one for one in await store.workers.list_workers(namespace) if one.id in ids]
        return json_response(DrainAnswer([shown(one) for one in found], asked.dry_run))

    @router.post("/v1/workers/{reference}/drain", openapi_extra=described(200, WorkerShown, problems=(404, 503)))
    @requires(Permission.DRAIN)
    async def drain_worker(reference: str, namespace: Within) -> Response:
        """Drains a worker: it finishes its attempts and claims no more runs."""
        worker_id = id_of(reference)
        if not await store.workers.list_workers(namespace, worker_id) or not await store.workers.drain_worker(
            worker_id
        ):
            raise unknown_worker(reference)
        store.hints.send([worker_topic(worker_id)])
        found = await store.workers.list_workers(namespace, worker_id)
        if not found:
            raise unknown_worker(reference)
        return json_response(shown(found[0]))

    return router
