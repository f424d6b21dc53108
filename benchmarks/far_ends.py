"""Far ends of traces and StatsD that take everything and look at nothing, so that Foliot's own cost is measured."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n"
LENGTH = b"content-length:"


@dataclass
class Arrived:
    trace_bytes: int = 0
    statsd_packets: int = 0


class _Packets(asyncio.DatagramProtocol):
    def __init__(self, arrived: Arrived) -> None:
        self._arrived = arrived

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._arrived.statsd_packets += 1


@asynccontextmanager
async def far_ends(arrived: Arrived) -> AsyncIterator[dict[str, str]]:
    """The settings that switch everything on, with these far ends."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    int(line[len(LENGTH) :]) for line in head.lower().split(b"\r\n") if line.startswith(LENGTH)
                )
                arrived.trace_bytes += len(await reader.readexactly(length))
                writer.write(ANSWER)
        writer.close()

    collector = await asyncio.start_server(take, "127.0.0.1", 0)
    loop = asyncio.get_running_loop()
    statsd, _ = await loop.create_datagram_endpoint(lambda: _Packets(arrived), local_addr=("127.0.0.1", 0))
    try:
        yield {
            "otel_endpoint": f"http://127.0.0.1:{collector.sockets[0].getsockname()[1]}",
            "statsd_address": f"127.0.0.1:{statsd.get_extra_info('sockname')[1]}",
            "job_metrics_tag": "watched",
        }
    finally:
        statsd.close()
        collector.close()
