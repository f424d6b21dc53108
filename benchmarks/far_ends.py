"""Far ends of traces, StatsD and the search engine that take everything and look at nothing, so that Foliot's own cost
is measured."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
ABOUT = b'{"version": {"number": "2.19.1", "distribution": "opensearch"}}'
TAKEN = b'{"index":{"status":201}}'
LENGTH = b"content-length:"


@dataclass
class Arrived:
    trace_bytes: int = 0
    documents: int = 0
    statsd_packets: int = 0


class _Packets(asyncio.DatagramProtocol):
    def __init__(self, arrived: Arrived) -> None:
        self._arrived = arrived

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._arrived.statsd_packets += 1


@asynccontextmanager
async def far_ends(arrived: Arrived, directory: Path) -> AsyncIterator[dict[str, str]]:
    """The settings that switch everything on, with these far ends. `directory`: for the archive."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    int(line[len(LENGTH) :]) for line in head.lower().split(b"\r\n") if line.startswith(LENGTH)
                )
                arrived.trace_bytes += len(await reader.readexactly(length))
                writer.write(ANSWER % 0)
        writer.close()

    async def index(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    (int(line[len(LENGTH) :]) for line in head.lower().split(b"\r\n") if line.startswith(LENGTH)), 0
                )
                body = await reader.readexactly(length)
                said = ABOUT
                if head.startswith(b"POST /_bulk"):
                    # Two lines for each document.
                    documents = body.count(b"\n") // 2
                    arrived.documents += documents
                    said = b'{"items":[' + b",".join([TAKEN] * documents) + b"]}"
                elif head.startswith(b"PUT"):
                    said = b"{}"
                elif b"_ism" in head:
                    said = b'{"_seq_no": 1, "_primary_term": 1}'
                writer.write(ANSWER % len(said) + said)
        writer.close()

    engine = await asyncio.start_server(index, "127.0.0.1", 0)
    collector = await asyncio.start_server(take, "127.0.0.1", 0)
    loop = asyncio.get_running_loop()
    statsd, _ = await loop.create_datagram_endpoint(lambda: _Packets(arrived), local_addr=("127.0.0.1", 0))
    try:
        yield {
            "otel_endpoint": f"http://127.0.0.1:{collector.sockets[0].getsockname()[1]}",
            "statsd_address": f"127.0.0.1:{statsd.get_extra_info('sockname')[1]}",
            "job_metrics_tag": "watched",
            "search_url": f"http://127.0.0.1:{engine.sockets[0].getsockname()[1]}",
            "archive_url": str(directory),
            "archive_minutes": "1",
            "archive_format": "jsonl",
        }
    finally:
        statsd.close()
        collector.close()
        engine.close()
