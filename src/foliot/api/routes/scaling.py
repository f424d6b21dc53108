"""`GET /v1/scaling`: how many slots each queue needs, for autoscalers such as KEDA's metrics-api scaler."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.requests.names import stored_name
from foliot.api.requests.parameters import words_of
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.model.namespace import bare
from foliot.model.roles import Permission
from foliot.model.scaling import QueueLoad, slots_wanted
from foliot.store.overview import load_of
from foliot.store.store import Store


class QueueScaling(msgspec.Struct, frozen=True):
    slots_wanted: int
    """The slots that the queue needs now. Divided by the slots of one worker, the number of workers."""
    slots: int
    """The slots of the workers that are not draining."""
    running: int
    waiting: int
    """Runs that are ready to start. Counting stops at 10,000."""
    lag_seconds: float
    """How long the oldest waiting run has been due."""


class Scaling(msgspec.Struct, frozen=True):
    slots_wanted: int
    """Of all these queues together."""
    queues: dict[str, QueueScaling]


def scaling_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["overview"], route_class=PermissionRoute)

    @router.get("/v1/scaling", openapi_extra=described(200, Scaling, problems=(422, 503)))
    @requires(Permission.VIEW)
    async def get_scaling(namespace: Within, queue: str = "") -> Response:
        """Tells how many slots each queue needs, by the rule of `foliot up --workers 2:8`: twice its slots if runs wait
        for more than ten seconds; otherwise the number of which 70 percent would be in use. Autoscalers such as KEDA
        divide `slots_wanted` by the slots of one worker. `queue` is a comma-separated list of the queues to tell about,
        whether or not they are in use yet."""
        asked = words_of(queue, "queue")
        loads = {bare(stored_name(namespace, name)): QueueLoad(0, 0, 0) for name in asked or ()}
        for view in await store.overview.list_queues(namespace):
            if not asked or bare(view.name) in loads:
                loads[bare(view.name)] = load_of(view, slots=view.slots)
        found = {name: shown(load) for name, load in loads.items()}
        return json_response(Scaling(sum(one.slots_wanted for one in found.values()), found))

    return router


def shown(load: QueueLoad) -> QueueScaling:
    return QueueScaling(slots_wanted(load), load.slots, load.running, load.waiting, load.lag_seconds)
