"""Makes the span of an attempt the current span of OpenTelemetry while its task runs.

The exporter of traces writes that span when the run has ended; here it is only the parent of others. Attributes and
events that the task adds to it go to a span of their own below it, which begins with the first of them.
"""

from __future__ import annotations

from typing import Any

from opentelemetry.context import attach
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    TraceFlags,
    get_tracer,
    set_span_in_context,
)

from foliot.clock import unix_milliseconds
from foliot.model.namespace import bare
from foliot.model.outcome import Attempted
from foliot.model.run import Claim, RunOptions
from foliot.model.tracing import TracingSettings, attempt_span, text_of, trace_of
from foliot.sdk.context import Context
from foliot.worker.executors.base import Executor
from foliot.worker.inline_calls import NO_CONTEXT

SAMPLED, NOT_SAMPLED = TraceFlags(TraceFlags.SAMPLED), TraceFlags(TraceFlags.DEFAULT)


class AttemptTraces:
    def __init__(self, settings: TracingSettings) -> None:
        self._ratio = settings.ratio

    def around(self, executor: Executor, claim: Claim, options: RunOptions) -> Executor:
        async def execute(payload: dict[str, Any], context: Context) -> Attempted:
            span = AttemptSpan(claim, options.traceparent, self._ratio)
            if context is not NO_CONTEXT:
                context.traceparent = span.traceparent()
            # Each attempt has context variables of its own, so nothing has to be restored.
            attach(set_span_in_context(span))
            try:
                return await executor(payload, context)
            finally:
                span.close()

        return execute


class AttemptSpan(NonRecordingSpan):
    """The span of an attempt, as its task sees it. Most tasks never look, so its ids are computed when one does."""

    def __init__(self, claim: Claim, traceparent: str | None, ratio: float) -> None:
        self._claim = claim
        self._traceparent = traceparent
        self._ratio = ratio
        self._began_at = unix_milliseconds()
        self._known: SpanContext | None = None
        self._notes: Span | None = None
        self._has_ended = False

    def get_span_context(self) -> SpanContext:
        if self._known is None:
            trace = trace_of(self._claim.run_id, self._traceparent, self._ratio)
            span_id = attempt_span(self._claim.run_id, self._claim.token)
            flags = SAMPLED if trace.is_sampled else NOT_SAMPLED
            self._known = SpanContext(trace.trace_id, span_id, is_remote=False, trace_flags=flags)
        return self._known

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_span_context()!r})"

    def traceparent(self) -> str:
        known = self.get_span_context()
        return text_of(known.trace_id, known.span_id, is_sampled=known.trace_flags.sampled)

    def is_recording(self) -> bool:
        return self.get_span_context().trace_flags.sampled and not self._has_ended

    def set_attributes(self, attributes: Any) -> None:
        if self.is_recording():
            self._noted().set_attributes(attributes)

    def set_attribute(self, key: str, value: Any) -> None:
        if self.is_recording():
            self._noted().set_attribute(key, value)

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        if self.is_recording():
            self._noted().add_event(name, attributes, timestamp)

    def add_link(self, context: SpanContext, attributes: Any = None) -> None:
        if self.is_recording():
            self._noted().add_link(context, attributes)

    def record_exception(
        self,
        exception: BaseException,
        attributes: Any = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        if self.is_recording():
            self._noted().record_exception(exception, attributes, timestamp, escaped)

    def set_status(self, status: Any, description: str | None = None) -> None:
        if self.is_recording():
            self._noted().set_status(status, description)

    def close(self) -> None:
        self._has_ended = True
        if self._notes is not None:
            self._notes.end()

    def _noted(self) -> Span:
        if self._notes is None:
            self._notes = get_tracer("foliot").start_span(
                bare(self._claim.task), context=set_span_in_context(self), start_time=self._began_at * 1_000_000
            )
        return self._notes
