"""`GET /v1/events` and `/v1/runs/{id}/events`: streams the state changes of runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import EVENT_PLACE, described
from foliot.api.requests.parameters import cursor_of, instant_of, run_id_of, states_of, text_of
from foliot.api.run_filters import job_named, name_of
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.api.streams.event_feed import EventFeed, Filter, Place, RunEvent
from foliot.api.streams.event_stream import EventFollower, all_events, counted, run_events
from foliot.api.streams.limits import EVENTS, Stream, StreamLimits
from foliot.clock import Clock
from foliot.errors import Invalid, NotFound
from foliot.model.roles import Permission
from foliot.store.lookup import find_run
from foliot.store.store import Store

LAST_ID = "Last-Event-ID"
LONGEST_AGO = timedelta(days=1)


class EventRoutes:
    def __init__(self, *, store: Store, clock: Clock, stopping: asyncio.Event, streams: StreamLimits) -> None:
        self._store = store
        self._clock = clock
        self._stopping = stopping
        self._feed = EventFeed(store=store, clock=clock)
        self._streams = streams
        self.router = APIRouter(tags=["runs"], route_class=PermissionRoute)
        every = described(200, problems=(422,), headers=(EVENT_PLACE,), events={"run": RunEvent})
        one = described(200, problems=(404, 422), headers=(LAST_ID,), events={"run": RunEvent})
        self.router.add_api_route("/v1/events", self.get_events, methods=["GET"], openapi_extra=every)
        self.router.add_api_route(
            "/v1/runs/{reference}/events", self.get_run_events, methods=["GET"], openapi_extra=one
        )

    @requires(Permission.VIEW)
    async def get_events(
        self,
        request: Request,
        namespace: Within,
        state: str = "",
        queue: str = "",
        task: str = "",
        job: str = "",
        tag: str = "",
        since: str = "",
        follow: bool = True,
    ) -> Response:
        """Streams the state changes of runs as server-sent events: every finished run once, in the order of finishing;
        starts and retries as a sample.

        The stream starts now. With Last-Event-ID or `since`, a time or a duration such as `5m`, it starts with the runs
        finished since then; with `follow=0` it ends after them.
        """
        states = states_of(state)
        wanted = Filter(
            namespace,
            None if states is None else frozenset(states),
            name_of(namespace, queue, "queue"),
            name_of(namespace, task, "task"),
            await job_named(self._store, namespace, job) if job else None,
            text_of(tag, "tag"),
        )
        begin = await self._begin(request.headers.get(LAST_ID, ""), since)
        return self._stream(all_events(self._following(request), wanted, begin, is_followed=follow))

    @requires(Permission.VIEW)
    async def get_run_events(self, reference: str, request: Request, namespace: Within) -> Response:
        """Streams the states of a run, from its current one to its end, as server-sent events."""
        run_id = run_id_of(reference)
        if await find_run(self._store, namespace, run_id) is None:
            raise NotFound(f"there is no run {reference!r}")
        return self._stream(run_events(self._following(request), run_id, request.headers.get(LAST_ID, "")))

    def _following(self, request: Request) -> EventFollower:
        return EventFollower(
            store=self._store,
            feed=self._feed,
            clock=self._clock,
            stopping=self._stopping,
            is_gone=request.is_disconnected,
        )

    def _stream(self, events: AsyncIterator[bytes]) -> Response:
        return Stream(counted(self._feed, events), streams=self._streams, kind=EVENTS)

    async def _begin(self, last_id: str, since: str) -> Place | None:
        """The last finished run that the client has seen; None to start now. Raises `Invalid` for more than a day
        ago."""
        now = await self._store.jobs.database_now()
        moment = instant_of(since, "since", now=now)
        begin = None if moment is None else (moment, UUID(int=0))
        if last_id:
            try:
                begin = cursor_of(last_id, LAST_ID)
            except Invalid:
                raise Invalid(
                    f"{LAST_ID}: {last_id!r} is not the id of an event of this stream", field=LAST_ID
                ) from None
        if begin is not None and begin[0] < now - LONGEST_AGO:
            field = LAST_ID if last_id else "since"
            raise Invalid(f"{field}: is more than a day ago; list older runs with GET /v1/runs", field=field)
        return begin
