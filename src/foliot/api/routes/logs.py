"""`GET /v1/runs/{id}/logs`: the output of a run, complete or as a stream."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import LOG_PLACE, described
from foliot.api.requests.parameters import run_id_of
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.api.streams.limits import HEADERS, LOGS, Stream, StreamLimits
from foliot.api.streams.log_stream import EVENTS, LogStream
from foliot.clock import Clock
from foliot.errors import Invalid, NotFound
from foliot.model.roles import Permission
from foliot.store.lookup import find_run, unknown_run
from foliot.store.run_lists import AttemptItem
from foliot.store.store import Store

PARTS = 4
EVENT_ID = re.compile(r"([1-9][0-9]{0,17}):([0-9]{1,18})")


def logs_router(*, store: Store, clock: Clock, stopping: asyncio.Event, streams: StreamLimits) -> APIRouter:
    router = APIRouter(tags=["runs"], route_class=PermissionRoute)
    shows = described(200, str, problems=(404, 422), headers=(LOG_PLACE,), media=("text/plain",), events=EVENTS)

    @router.get("/v1/runs/{reference}/logs", openapi_extra=shows)
    @requires(Permission.VIEW)
    async def get_logs(
        reference: str, request: Request, namespace: Within, attempt: int | None = None, follow: bool = False
    ) -> Response:
        """Shows the output of a run's last attempt, or of `attempt`. With `follow=1`, streams it as server-sent
        events until the run ends."""
        run_id = run_id_of(reference)
        if await find_run(store, namespace, run_id) is None:
            raise await unknown_run(store, namespace, run_id)
        attempts = await store.run_lists.list_attempts(run_id)
        asked = [one for one in attempts if attempt is None or one.attempt == attempt]
        if attempt is not None and not asked:
            raise NotFound(f"the run {reference!r} has no attempt {attempt}")
        position = position_of(request.headers.get("last-event-id", ""))
        if follow:
            is_known = position is not None and position[0] in [one.token for one in asked]
            return stream(run_id, request, position if is_known else None, asked[-1] if attempt is not None else None)
        output = b"".join([await output_of(run_id, one) for one in pieces_of_last(asked)])
        return Response(output, media_type="text/plain; charset=utf-8", headers=HEADERS)

    def stream(
        run_id: UUID, request: Request, position: tuple[int, int] | None, only_attempt: AttemptItem | None
    ) -> Response:
        following = LogStream(
            run_id,
            store=store,
            clock=clock,
            stopping=stopping,
            is_gone=request.is_disconnected,
            position=position,
            only_attempt=only_attempt,
        )
        return Stream(following.events(), streams=streams, kind=LOGS)

    async def output_of(run_id: UUID, attempt: AttemptItem) -> bytes:
        if attempt.finished_at is not None and (kept := await store.logs.get_output(run_id, attempt.token)) is not None:
            return kept
        found = bytearray()
        while chunk := await store.logs.read_logs(run_id, attempt.token, len(found), parts=PARTS):
            found += chunk
        return bytes(found)

    return router


def pieces_of_last(attempts: Sequence[AttemptItem]) -> list[AttemptItem]:
    """The last attempt. That of a durable function consists of a piece for each time that it was suspended."""
    if not attempts:
        return []
    last = attempts[-1]
    pieces = [last]
    for one in reversed(attempts[:-1]):
        if one.attempt != last.attempt or one.outcome != "suspended":
            break
        pieces.append(one)
    return pieces[::-1]


def position_of(event_id: str) -> tuple[int, int] | None:
    if not event_id:
        return None
    found = EVENT_ID.fullmatch(event_id)
    if found is None:
        raise Invalid(f"Last-Event-ID: {event_id!r} is not the id of an event of this stream", field="Last-Event-ID")
    return int(found[1]), int(found[2])
