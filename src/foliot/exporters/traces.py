"""Sends the spans of ended runs to an OpenTelemetry collector.

History is the buffer: while the collector is away, the place in it stays, and nothing is kept in memory. Endings that
have waited too long are dropped and counted. A run costs nothing for its trace until this service reads its end, and
the service takes pauses, so that a backlog of traces can't take the processor from jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import foliot
from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus, ExportDropped
from foliot.exporters.exporter import Exporter
from foliot.exporters.otlp import SEND_SECONDS, NotSent, collector_of
from foliot.exporters.trace_spans import by_run, is_kept, spans_of
from foliot.store.exports import Place, TracedEnding
from foliot.store.store import Store

BATCH = 500
# Encoding this many runs takes a few milliseconds. The other services of the node get their turn in between.
TURN = 25
# How long endings wait for a collector that is away.
KEEP = timedelta(minutes=5)
# Pauses this many times as long as the work before them.
PAUSES_PER_WORK = 3.0


class TraceExporter(Exporter[TracedEnding]):
    export_name = "traces"

    def __init__(self, *, store: Store, config: Config, clock: Clock, events: EventBus) -> None:
        super().__init__(store=store, clock=clock, events=events)
        self._collector = collector_of(config)
        self._ratio = config.otel_sample_ratio
        self._resource = {"service.name": config.otel_service_name, "service.version": foliot.__version__}

    def batch_size(self) -> int:
        return BATCH

    async def list_endings(self, after: Place, until: datetime, limit: int) -> Sequence[TracedEnding]:
        self._until = until
        return await self._store.exports.list_traced(after, until, limit)

    async def run_once(self) -> float:
        began_at = self.clock.monotonic()
        delay = await super().run_once()
        return delay or (self.clock.monotonic() - began_at) * PAUSES_PER_WORK

    async def export(self, endings: Sequence[TracedEnding]) -> None:
        kept = [ending for ending in endings if is_kept(ending, self._ratio)]
        if not kept:
            return
        request = await self._encoded(kept)
        try:
            async with asyncio.timeout(SEND_SECONDS):
                rejected = await self._collector.send(request)
        except (NotSent, TimeoutError) as error:
            why = str(error) or "no answer in time"
            is_final = isinstance(error, NotSent) and error.is_final
            if not is_final and self._until - kept[-1].at < KEEP:
                raise NotSent(f"traces wait in the database until the collector takes them: {why}") from None
            self.events.emit(ExportDropped(self.export_name, _count(request), why))
            return
        if rejected:
            self.events.emit(ExportDropped(self.export_name, rejected, "the collector rejected them"))

    async def on_stop(self) -> None:
        await super().on_stop()
        await self._collector.close()

    async def _encoded(self, endings: Sequence[TracedEnding]) -> ExportTraceServiceRequest:
        retried = [ending.id for ending in endings if ending.token > 1]
        since = min(ending.created_at for ending in endings)
        exports = self._store.exports
        earlier = by_run(await exports.list_earlier_attempts(retried, since)) if retried else {}
        failed = sorted({ending.task for ending in endings if ending.error_kind is not None})
        circuits = await exports.find_open_circuits(failed) if failed else {}
        request = ExportTraceServiceRequest()
        of_resource = request.resource_spans.add()
        for key, value in self._resource.items():
            of_resource.resource.attributes.add(key=key).value.string_value = value
        of_scope = of_resource.scope_spans.add()
        of_scope.scope.name = "foliot"
        for place, ending in enumerate(endings):
            of_scope.spans.extend(spans_of(ending, earlier.get(ending.id, ()), circuits, self._ratio))
            if place % TURN == TURN - 1:
                await self.clock.sleep(0)
        return request


def _count(request: ExportTraceServiceRequest) -> int:
    return sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)
