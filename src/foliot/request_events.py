"""Events of requests to the API."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.events import Event


@dataclass(frozen=True, slots=True)
class RequestFailed(Event):
    """A request was answered with 500 because of a fault in Foliot. The answer names the same `request_id`."""

    request_id: str
    method: str
    path: str
    error: str
    traceback: str
    trace_id: str = ""
    """From the header `traceparent` of the request."""
