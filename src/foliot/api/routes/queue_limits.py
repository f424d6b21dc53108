"""Limits of queues."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from fastapi import APIRouter
from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import read_json
from foliot.api.requests.etags import Version, if_match_of, tagged
from foliot.api.requests.names import stored_name
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.errors import Conflict, PreconditionFailed
from foliot.model.job_request import EARLIEST
from foliot.model.roles import Permission
from foliot.store.hints import ALL_QUEUES_TOPIC
from foliot.store.queue_keys import COUNT_MAX, ConcurrencyKey, FairnessKey, RateKey
from foliot.store.queue_limits import QueueLimits
from foliot.store.store import Store

Bound = Annotated[int, Meta(ge=1, le=1_000_000_000)]


class QueueChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Null removes a limit."""

    max_running: Bound | UnsetType | None = UNSET
    max_depth: Bound | UnsetType | None = UNSET


class QueueLimitsShown(msgspec.Struct, frozen=True):
    name: str
    max_running: int | None
    max_depth: int | None
    updated_at: datetime | None
    """Null if no limit was ever set."""


class QueueKeysShown(msgspec.Struct, frozen=True):
    concurrency: list[ConcurrencyKey]
    """The keys of its running and first ready runs, and those that its runs wait for; a hundred at most."""
    rate: list[RateKey]
    """The keys that its runs wait for."""
    fairness: list[FairnessKey]
    """The keys of runs that take turns."""
    counts_stop_at: int
    ended_last_minute: int
    more_ended: bool
    """More runs than were read have ended in the last minute, in all queues together."""


change_decoder = msgspec.json.Decoder(QueueChange)
CHANGE_ATTEMPTS = 10
CHANGES = {
    "ten at a time": {"max_running": 10},
    "no limit on running jobs": {"max_running": None, "max_depth": 100_000},
}


class QueueLimitRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["limits and pauses"], route_class=PermissionRoute)
        add = self.router.add_api_route
        changes = described(
            200, QueueLimitsShown, body=QueueChange, examples=CHANGES, problems=(409, 422, 503), matched=True
        )
        shows = described(200, QueueLimitsShown, problems=(422, 503), tagged=True)
        add("/v1/queues/{name}", self.get_queue, methods=["GET"], openapi_extra=shows)
        keys = described(200, QueueKeysShown, problems=(422, 503))
        add("/v1/queues/{name}/keys", self.get_queue_keys, methods=["GET"], openapi_extra=keys)
        add("/v1/queues/{name}", self.change_queue, methods=["PATCH"], openapi_extra=changes)

    @requires(Permission.VIEW)
    async def get_queue(self, name: str, request: Request, namespace: Within) -> Response:
        """Shows the limits of a queue; null means none. A queue exists once a job names it, without limits until
        they are set."""
        return self._limits(name, await self._store.queues.get_queue(stored_name(namespace, name)), request)

    @requires(Permission.VIEW)
    async def get_queue_keys(self, name: str, namespace: Within) -> Response:
        """Shows the keys of limits and turns that the runs of a queue share, how many runs wait for each, and how many
        runs have ended in the last minute."""
        stored, keys = stored_name(namespace, name), self._store.queue_keys
        pace = await keys.pace(stored)
        return json_response(
            QueueKeysShown(
                await keys.concurrency_keys(stored),
                await keys.rate_keys(stored),
                await keys.fairness_keys(stored),
                COUNT_MAX,
                pace.ended,
                pace.more,
            )
        )

    @requires(Permission.OPERATE)
    async def change_queue(self, name: str, request: Request, namespace: Within) -> Response:
        """Limits how many runs of a queue run at once, and how many wait before new jobs are refused with 429."""
        asked = await read_json(request, change_decoder, max_bytes=self._body_max_bytes)
        if_match, stored = if_match_of(request), stored_name(namespace, name)
        for _ in range(CHANGE_ATTEMPTS):
            limits = await self._store.queues.get_queue(stored)
            if if_match is not None:
                if_match.check(f"limits of the queue {name!r}", version_of(limits))
            changed = QueueLimits(
                max_running=limits.max_running if asked.max_running is UNSET else asked.max_running,
                max_depth=limits.max_depth if asked.max_depth is UNSET else asked.max_depth,
            )
            # Only if the limits are still as read, so that a simultaneous change is not undone.
            if await self._store.queues.put_queue(stored, changed, limits):
                self._store.hints.send([ALL_QUEUES_TOPIC])
                return self._limits(name, await self._store.queues.get_queue(stored), request)
        why = f"the limits of the queue {name!r} keep changing at the same time; GET them again and retry"
        raise PreconditionFailed(why) if if_match is not None else Conflict(why)

    def _limits(self, name: str, limits: QueueLimits, request: Request) -> Response:
        shown = QueueLimitsShown(name, limits.max_running, limits.max_depth, limits.updated_at)
        return tagged(request, shown, version_of(limits))


def version_of(limits: QueueLimits) -> Version:
    """The time of the last change, which grows with each change."""
    number = 0 if limits.updated_at is None else (limits.updated_at - EARLIEST) // timedelta(microseconds=1)
    return Version(number, EARLIEST)
