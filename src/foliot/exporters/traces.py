"""Sends the spans of ended runs to an OpenTelemetry collector.

History is the buffer: while the collector is away, the place in it stays, and nothing is kept in memory. Endings that
have waited too long are dropped and counted. A run costs nothing for its trace until this service reads its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import foliot
from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus, ExportDropped
from foliot.exporters import otlp_encoding
from foliot.exporters.exporter import Exporter
from foliot.exporters.otlp import SEND_SECONDS, NotSent, collector_of
from foliot.exporters.trace_spans import by_run, is_kept, spans_of
from foliot.store.exports import Place, TracedEnding
from foliot.store.store import Store

BATCH = 1_000
# Collectors take requests of 4 MB. A run with many links or a long error has large spans.
REQUEST_BYTES = 1_048_576
# Encoding this many runs takes a few milliseconds. The other services of the node get their turn in between.
TURN = 25
# How long endings wait for a collector that is away.
KEEP = timedelta(minutes=5)


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

    async def export(self, endings: Sequence[TracedEnding]) -> None:
        kept = [ending for ending in endings if is_kept(ending, self._ratio)]
        if not kept:
            return
        for spans in in_requests(await self._encoded(kept)):
            await self._send(spans, kept[-1].at)

    async def _send(self, spans: Sequence[bytes], last_at: datetime) -> None:
        request = otlp_encoding.request(spans, self._resource)
        try:
            async with asyncio.timeout(SEND_SECONDS):
                rejected = await self._collector.send(request)
        except (NotSent, TimeoutError) as error:
            why = str(error) or "no answer in time"
            is_final = isinstance(error, NotSent) and error.is_final
            if not is_final and self._until - last_at < KEEP:
                raise NotSent(f"traces wait in the database until the collector takes them: {why}") from None
            self.events.emit(ExportDropped(self.export_name, len(spans), why))
            return
        if rejected:
            self.events.emit(ExportDropped(self.export_name, rejected, "the collector rejected them"))

    async def on_stop(self) -> None:
        await super().on_stop()
        await self._collector.close()

    async def _encoded(self, endings: Sequence[TracedEnding]) -> list[bytes]:
        retried = [ending.id for ending in endings if ending.token > 1]
        since = min(ending.created_at for ending in endings)
        exports = self._store.exports
        earlier = by_run(await exports.list_earlier_attempts(retried, since)) if retried else {}
        failed = sorted({ending.task for ending in endings if ending.error_kind is not None})
        circuits = await exports.find_open_circuits(failed) if failed else {}
        spans: list[bytes] = []
        for place, ending in enumerate(endings):
            spans += spans_of(ending, earlier.get(ending.id, ()), circuits, self._ratio)
            if place % TURN == TURN - 1:
                await self.clock.sleep(0)
        return spans


def in_requests(spans: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Groups spans into requests of a bounded size."""
    request: list[bytes] = []
    size = 0
    for span in spans:
        if request and size + len(span) > REQUEST_BYTES:
            yield request
            request, size = [], 0
        request.append(span)
        size += len(span)
    if request:
        yield request
