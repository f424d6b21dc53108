"""The trace that a request belongs to, by the header `traceparent` of W3C, and links to traces."""

from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID

import msgspec
from starlette.requests import Request

from foliot.api.requests.headers import header_of
from foliot.config import Config
from foliot.model.job_request import JobRequest
from foliot.model.tracing import trace_id_of, trace_of, traceparent_in

J = TypeVar("J", bound=JobRequest)


def traceparent_of(request: Request) -> str | None:
    """None if there is none, or an invalid one: tracing must never refuse a job."""
    return traceparent_in(header_of(request, "traceparent"))


def in_trace_of(request: Request, job: J) -> J:
    """The job with the trace of the request, unless it names one. The runs of a recurring job have their own."""
    if (header := header_of(request, "traceparent")) is None:
        return job
    traceparent = traceparent_in(header)
    if traceparent is None or job.traceparent is not None or job.is_recurring:
        return job
    return msgspec.structs.replace(job, traceparent=traceparent)


class TraceLinks:
    """The ids and addresses of the traces of runs."""

    def __init__(self, config: Config) -> None:
        self._template = config.trace_url_template
        self._is_tracing = bool(config.otel_endpoint or self._template)

    def of_run(self, run_id: UUID, options: Any) -> tuple[str | None, str | None]:
        """The id of the trace, if the run may have one, and its address, if there is a template."""
        stored = options.get("traceparent") if isinstance(options, dict) else None
        traceparent = traceparent_in(stored) if isinstance(stored, str) else None
        if not self._is_tracing and traceparent is None:
            return None, None
        trace_id = trace_id_of(run_id, traceparent)
        if not self._template:
            return trace_id, None
        span_id = f"{trace_of(run_id, traceparent, 1.0).span_id:016x}"
        url = self._template.replace("{trace_id}", trace_id).replace("{span_id}", span_id)
        return trace_id, url.replace("{run_id}", str(run_id))


NO_LINKS = TraceLinks(Config())
