"""Sends counts, durations and gauges to a StatsD server by UDP.

UDP neither waits nor reports, so a slow or absent server holds nothing up. Lines that this machine could not send are
counted in `ExportDropped`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from datetime import datetime

from foliot.clock import Clock
from foliot.config import Config, host_and_port
from foliot.events import EventBus, ExportDropped
from foliot.exporters.exporter import Exporter
from foliot.exporters.statsd_lines import StatsdLines, packets
from foliot.store.exports import Ending, Place
from foliot.store.store import Store

GAUGE_SECONDS = 10.0
RESOLVE_SECONDS = 60.0
QUEUES_MAX = 100


class StatsdExporter(Exporter[Ending]):
    export_name = "statsd"

    def __init__(self, *, store: Store, config: Config, clock: Clock, events: EventBus) -> None:
        super().__init__(store=store, clock=clock, events=events)
        self._lines = StatsdLines(has_tags=config.statsd_tags)
        self._host, self._port = host_and_port("statsd_address", config.statsd_address)
        self._prefix = f"{config.statsd_prefix}." if config.statsd_prefix else ""
        self._socket: socket.socket | None = None
        self._resolved_at = 0.0
        self._gauged_at: float | None = None

    async def list_endings(self, after: Place, until: datetime, limit: int) -> Sequence[Ending]:
        return await self._store.exports.list_unexported(after, until, limit)

    async def export(self, endings: Sequence[Ending]) -> None:
        lines = list(self._lines.of_endings(endings))
        now = self.clock.monotonic()
        if self._gauged_at is None or now - self._gauged_at >= GAUGE_SECONDS:
            self._gauged_at = now
            queues = await self._store.overview.list_queues(None, QUEUES_MAX)
            lines += self._lines.of_queues({queue.name: queue.ready for queue in queues})
        if lines:
            await self._send([self._prefix + line for line in lines])

    async def on_stop(self) -> None:
        await super().on_stop()
        self._disconnect()

    async def _send(self, lines: Sequence[str]) -> None:
        dropped, why = 0, ""
        try:
            connected = await self._connected()
        except OSError as error:
            self.events.emit(ExportDropped(self.export_name, len(lines), str(error)))
            return
        for packet in packets(lines):
            try:
                connected.send(packet)
            except OSError as error:
                # The system reports that nobody listens with the packet after the one that was refused.
                dropped, why = dropped + packet.count(b"\n") + 1, str(error)
        if dropped:
            self.events.emit(ExportDropped(self.export_name, dropped, why))

    async def _connected(self) -> socket.socket:
        """The socket. The name of the server is resolved again every minute, because its address may change."""
        now = self.clock.monotonic()
        if self._socket is not None and now - self._resolved_at < RESOLVE_SECONDS:
            return self._socket
        self._disconnect()
        loop = asyncio.get_running_loop()
        family, kind, protocol, _, address = (await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_DGRAM))[0]
        connected = socket.socket(family, kind, protocol)
        connected.setblocking(False)
        connected.connect(address)
        self._socket, self._resolved_at = connected, now
        return connected

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
