"""A real server under attack: what the attack costs it, and what an innocent client notices of it meanwhile."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
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
    """By how much its memory grew, at the most."""
    latencies: list[float] = field(default_factory=list)
    """Seconds that each of the innocent client's requests took."""
    refusals: list[str] = field(default_factory=list)
    """Of the innocent client's requests, those that were not answered with 200."""

    @property
    def slowest(self) -> float:
        return max(self.latencies)


@dataclass(frozen=True)
class Attacked:
    """A server that is to be attacked."""

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

    @contextmanager
    def watched(self) -> Iterator[Cost]:
        """While it lasts, an innocent client asks for /healthz, on a new connection each time, from a thread of its own."""
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
            asking.join()
            cost.cpu_seconds = self.cpu_seconds() - cpu


@asynccontextmanager
async def attacked(database_url: str, **settings: object) -> AsyncIterator[Attacked]:
    """A `foliot server` that asks for no token."""
    environment: Mapping[str, str] = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_PORT": "0", "FOLIOT_LOG_LEVEL": "info"} | {
        f"FOLIOT_{name.upper()}": str(value) for name, value in settings.items()
    }
    async with FoliotProcess("server", "--open", environment=environment) as process:
        started = await process.event("ProcessStarted", part="server")
        yield Attacked(started["address"], process.pid, process)
