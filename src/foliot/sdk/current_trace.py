"""The current span of OpenTelemetry, in programs that use it. Nothing is imported here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from foliot.model.tracing import text_of


def current_traceparent() -> str | None:
    """The context of the current span as W3C writes it. None without OpenTelemetry, and outside of spans."""
    trace = sys.modules.get("opentelemetry.trace")
    current = getattr(trace, "get_current_span", None)
    if current is None:
        return None
    context = current().get_span_context()
    if not context.is_valid:
        return None
    return text_of(context.trace_id, context.span_id, is_sampled=context.trace_flags.sampled)


def in_current_trace(job: Mapping[str, Any]) -> dict[str, Any]:
    """The job with the current trace, unless it names one."""
    traceparent = None if job.get("traceparent") is not None else current_traceparent()
    return dict(job) if traceparent is None else {**job, "traceparent": traceparent}
