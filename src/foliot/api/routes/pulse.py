"""`GET /v1/pulse`: the state of a namespace, once a second, for pages that are open."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.api.streams.limits import EVENTS, Stream, StreamLimits
from foliot.api.streams.pulse import PulseDocument, PulseFeed, pulses
from foliot.clock import Clock
from foliot.model.roles import Permission
from foliot.store.store import Store


def pulse_router(*, store: Store, clock: Clock, stopping: asyncio.Event, streams: StreamLimits) -> APIRouter:
    router = APIRouter(tags=["overview"], route_class=PermissionRoute)
    feed = PulseFeed(store=store, clock=clock)

    @router.get("/v1/pulse", openapi_extra=described(200, events={"pulse": PulseDocument}))
    @requires(Permission.VIEW)
    async def get_pulse(request: Request, namespace: Within, follow: bool = True) -> Response:
        """Streams one small document a second as server-sent events: counts, rates, workers, notices, and what has
        changed since the previous document.

        After a reconnect, reload everything you show, because changes during the break are not listed. All streams of a
        server share one database query.
        """
        documents = pulses(
            feed,
            namespace,
            clock=clock,
            stopping=stopping,
            is_gone=request.is_disconnected,
            is_followed=follow,
        )
        return Stream(documents, streams=streams, kind=EVENTS)

    return router
