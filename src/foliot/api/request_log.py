"""Logs requests that fail because of a fault in Foliot, with the id that their answer names."""

from __future__ import annotations

import traceback

from starlette.types import ASGIApp, Receive, Scope, Send

from foliot.api.problems import REQUEST_ID
from foliot.api.requests.headers import HEADERS
from foliot.events import EventBus
from foliot.model.tracing import traceparent_in
from foliot.request_events import RequestFailed

FRAMES_MAX = 20


class RequestLog:
    """The outermost layer. Requests that succeed pass it without any work."""

    def __init__(self, app: ASGIApp, *, events: EventBus) -> None:
        self._app = app
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            self._events.emit(failure_of(scope, error))


def failure_of(scope: Scope, error: Exception) -> RequestFailed:
    traceparent = traceparent_in(scope.get(HEADERS, {}).get("traceparent"))
    return RequestFailed(
        request_id=scope.get(REQUEST_ID, ""),
        method=scope.get("method", ""),
        path=scope.get("path", ""),
        error=f"{type(error).__name__}: {error}",
        # The innermost frames come last, and a long text is cut at its end.
        traceback="".join(traceback.format_tb(error.__traceback__)[-FRAMES_MAX:]),
        trace_id="" if traceparent is None else traceparent[3:35],
    )
