"""A real server under attack: the cost of the attack, and its effect on an innocent client."""

from __future__ import annotations

import asyncio
import http.client
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import psutil

from tests.support.processes import FoliotProcess

PAUSE_SECONDS = 0.05
GIVE_UP_SECONDS = 60.0


@dataclass
class Cost:
    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    """The largest growth of its memory."""
    latencies: list[float] = field(default_factory=list)
    """Seconds of each request of the innocent client."""
    refusals: list[str] = field(default_factory=list)
    """Requests of the innocent client that did not get a 200."""

    @property
    def slowest(self) -> float:
        return max(self.latencies)


@dataclass(frozen=True)
class Attacked:
    """Starts a server to attack."""

    address: str
    pid: int
    process: FoliotProcess

    @property
    def place(self) -> tuple[str, int]:
        parts = urlsplit(self.address)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[Cost]:
        """Requests /healthz from another thread, on a new connection each time, while the block runs."""
        cost, over = Cost(), threading.Event()
        process = psutil.Process(self.pid)
        memory, cpu = process.memory_info().rss, self.cpu_seconds()

        def ask() -> None:
            is_over = False
            while not is_over:
                began = time.monotonic()
                try:
                    connection = http.client.HTTPConnection(*self.place, timeout=GIVE_UP_SECONDS)
                    connection.request("GET", "/healthz")
                    if (status := connection.getresponse().status) != 200:
                        cost.refusals.append(str(status))
                    connection.close()
                except OSError as error:
                    cost.refusals.append(repr(error))
                cost.latencies.append(time.monotonic() - began)
                cost.memory_bytes = max(cost.memory_bytes, process.memory_info().rss - memory)
                is_over = over.wait(PAUSE_SECONDS)

        asking = threading.Thread(target=ask, name="innocent client")
        asking.start()
        try:
            yield cost
        finally:
            over.set()
            await asyncio.to_thread(asking.join)
            cost.cpu_seconds = self.cpu_seconds() - cpu


@dataclass
class Flooded:
    sent: int
    answer: bytes
    """The first bytes of the answer, if any."""
    is_ended: bool
    """Whether the server closed the connection before everything was sent."""


async def flood(server: Attacked, opening: bytes, unit: bytes, *, most: int = 100_000_000) -> Flooded:
    """Sends an opening, then the same bytes repeatedly, until the server closes the connection."""
    reader, writer = await asyncio.open_connection(*server.place)
    sent, block = 0, unit * (65_536 // len(unit))
    is_ended = False
    try:
        writer.write(opening)
        while sent < most and not (is_ended := reader.at_eof()):
            writer.write(block)
            await writer.drain()
            sent += len(block)
        async with asyncio.timeout(GIVE_UP_SECONDS):
            answer = await reader.read(4096)
    except OSError:
        is_ended, answer = True, b""
    finally:
        writer.transport.abort()
    return Flooded(sent, answer, is_ended)


async def answer_to(server: Attacked, *sent: bytes, seconds: float = GIVE_UP_SECONDS) -> bytes:
    """Reads until the server closes the connection. If the server was still receiving, the answer may be incomplete."""
    reader, writer = await asyncio.open_connection(*server.place)
    try:
        for part in sent:
            writer.write(part)
            await writer.drain()
        async with asyncio.timeout(seconds):
            return await reader.read()
    finally:
        writer.transport.abort()


@asynccontextmanager
async def attacked(database_url: str, *, files_max: int | None = None, **settings: object) -> AsyncIterator[Attacked]:
    """A `foliot server` that requires no token."""
    environment: Mapping[str, str] = {
        "FOLIOT_DATABASE_URL": database_url,
        "FOLIOT_PORT": "0",
        "FOLIOT_LOG_LEVEL": "info",
    } | {f"FOLIOT_{name.upper()}": str(value) for name, value in settings.items()}
    async with FoliotProcess("server", "--open", environment=environment, files_max=files_max) as process:
        started = await process.event("ProcessStarted", part="server")
        yield Attacked(started["address"], process.pid, process)
