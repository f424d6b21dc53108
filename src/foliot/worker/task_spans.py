"""Sends the spans that tasks record to the OpenTelemetry collector.

If the app has configured OpenTelemetry itself, its spans go where it says, and this service has nothing to do. The
buffer is bounded: when the collector is away, or slower than the tasks, spans are dropped and counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

import foliot
from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus, ExportDropped
from foliot.exporters.otlp import SEND_SECONDS, NotSent, collector_of
from foliot.service import Service

SEND_EVERY_SECONDS = 1.0
BUFFER = 4_096
BATCH = 512
NAME = "task_spans"


class TaskSpans(Service):
    def __init__(self, *, config: Config, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._collector = collector_of(config)
        self._waiting: deque[ReadableSpan] = deque()
        self._dropped = 0
        self._resource = Resource(
            {
                "service.name": config.otel_service_name,
                "service.version": foliot.__version__,
            }
        )

    async def on_start(self) -> None:
        Relay.install(self._resource).target = self

    async def run_once(self) -> float:
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self.events.emit(ExportDropped(NAME, dropped, f"more than {BUFFER} spans waited"))
        if not self._waiting:
            return SEND_EVERY_SECONDS
        batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
        await self._send(batch)
        return 0.0 if len(self._waiting) >= BATCH else SEND_EVERY_SECONDS

    async def on_stop(self) -> None:
        if (relay := Relay.installed) is not None and relay.target is self:
            relay.target = None
        if self._waiting:
            batch = list(self._waiting)
            self._waiting.clear()
            await self._send(batch)
        await self._collector.close()

    def add(self, span: ReadableSpan) -> None:
        """Called in any thread."""
        if len(self._waiting) >= BUFFER:
            self._dropped += 1
        else:
            self._waiting.append(span)

    async def _send(self, spans: list[ReadableSpan]) -> None:
        try:
            async with asyncio.timeout(SEND_SECONDS):
                rejected = await self._collector.send(encode_spans(spans).SerializeToString())
        except (NotSent, TimeoutError) as error:
            self.events.emit(ExportDropped(NAME, len(spans), str(error) or "no answer in time"))
            return
        if rejected:
            self.events.emit(ExportDropped(NAME, rejected, "the collector rejected them"))


class Relay(SpanProcessor):
    """Passes spans on to the service of the running worker. A process can set its tracer provider only once."""

    installed: Relay | None = None

    def __init__(self) -> None:
        self.target: TaskSpans | None = None

    @classmethod
    def install(cls, resource: Resource) -> Relay:
        if cls.installed is None:
            cls.installed = cls()
            if not isinstance(trace.get_tracer_provider(), TracerProvider):
                provider = TracerProvider(resource=resource, shutdown_on_exit=False)
                provider.add_span_processor(cls.installed)
                trace.set_tracer_provider(provider)
        return cls.installed

    def on_start(self, span: Span, parent_context: Any = None) -> None: ...

    def on_end(self, span: ReadableSpan) -> None:
        target = self.target
        if target is not None and span.context is not None and span.context.trace_flags.sampled:
            target.add(span)

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True
