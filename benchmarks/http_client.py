"""The client of `over_http.py`, in a process of its own. Run as `python -m benchmarks.http_client KIND ADDRESS NUMBER
SECONDS [BODY]`.

It is lean, so that the server is measured and not the client: it sends one prepared request over kept connections, and
looks only for the status and the end of each response. It prints one JSON object.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any, cast
from urllib.parse import urlsplit

import asyncpg
import uvloop

from benchmarks.raw_sql import INSERT, PAYLOAD
from foliot.model.ids import new_id

CREATED = b"HTTP/1.1 201 "
LENGTH = b"content-length: "
ANSWER_SECONDS = 30.0
CONNECTIONS_MAX = 4000


class Connection(asyncio.Protocol):
    """Sends one request at a time, and calls back when its response is complete."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._received = b""
        self._on_answer: Callable[[bool], None] | None = None
        self.is_open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transport of uvloop is not a subclass of asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)

    def ask(self, request: bytes, on_answer: Callable[[bool], None]) -> None:
        self._on_answer = on_answer
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        end = received.find(b"\r\n\r\n")
        # Matches only the spelling of our server, because looking for others would take time from what is measured.
        length = received.find(LENGTH)
        if end < 0 or len(received) - end - 4 < int(received[length + len(LENGTH) : received.index(b"\r", length)]):
            self._received = received
            return
        self._received, on_answer, self._on_answer = b"", self._on_answer, None
        if on_answer is not None:
            on_answer(received.startswith(CREATED))

    def connection_lost(self, _: Exception | None) -> None:
        self.is_open = False
        on_answer, self._on_answer = self._on_answer, None
        if on_answer is not None:
            on_answer(False)

    def close(self) -> None:
        self._transport.close()


class Client:
    def __init__(self, address: str, body: bytes) -> None:
        where = urlsplit(address)
        assert where.hostname is not None
        assert where.port is not None
        self._host, self._port = where.hostname, where.port
        self._idle: list[Connection] = []
        self._all: list[Connection] = []
        self._opening: set[asyncio.Task[None]] = set()
        self._under_way = 0
        self._is_quiet = asyncio.Event()
        token = os.environ.get("FOLIOT_TOKEN")
        head = [
            "POST /v1/jobs HTTP/1.1",
            f"Host: {self._host}:{self._port}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            *([f"Authorization: Bearer {token}"] if token else []),
        ]
        self._request = "\r\n".join(head).encode() + b"\r\n\r\n" + body
        self.latencies: list[float] = []
        self.failures = 0

    async def connect(self, number: int) -> None:
        self._idle += await asyncio.gather(*(self._connect() for _ in range(number)))

    def post(self, since: float, then: Callable[[], None] | None = None) -> None:
        """Sends a request now, over an idle or a new connection. Its latency counts from `since`."""
        self._under_way += 1
        self._is_quiet.clear()
        # The server closes connections that are idle for some seconds.
        while self._idle and not self._idle[-1].is_open:
            self._all.remove(self._idle.pop())
        if not self._idle:
            if len(self._all) + len(self._opening) >= CONNECTIONS_MAX:
                raise RuntimeError(f"{CONNECTIONS_MAX} requests are on their way: the server does not keep up at all")
            opening = asyncio.ensure_future(self._post_on_a_new_one(since))
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)
            return
        self._ask(self._idle.pop(), since, then)

    def _ask(self, connection: Connection, since: float, then: Callable[[], None] | None = None) -> None:
        def answered(is_created: bool) -> None:
            self.latencies.append(perf_counter() - since)
            self.failures += not is_created
            self._idle.append(connection)
            if then is not None:
                then()
            self._under_way -= 1
            if not self._under_way:
                self._is_quiet.set()

        connection.ask(self._request, answered)

    async def all_answered(self) -> None:
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._is_quiet.wait()

    @property
    def connections(self) -> int:
        return len(self._all)

    def close(self) -> None:
        for connection in self._all:
            connection.close()

    async def _connect(self) -> Connection:
        _, connection = await asyncio.get_running_loop().create_connection(Connection, self._host, self._port)
        self._all.append(connection)
        return connection

    async def _post_on_a_new_one(self, since: float) -> None:
        self._ask(await self._connect(), since)


async def open_loop(address: str, rate: int, seconds: float, body: bytes) -> dict[str, float]:
    """Starts each request when it is due, regardless of earlier ones. Its latency counts from its due time."""
    client = Client(address, body)
    await client.connect(64)
    for _ in range(200):
        client.post(perf_counter())
        await asyncio.sleep(0.005)
    await client.all_answered()
    client.latencies.clear()
    cpu = process_time()
    number, began, late = int(rate * seconds), perf_counter() + 0.05, 0.0
    sent = 0
    while sent < number:
        now = perf_counter()
        while sent < number and (due := began + sent / rate) <= now:
            late = max(late, now - due)
            client.post(due)
            sent += 1
        await asyncio.sleep(max(0.0, began + sent / rate - perf_counter()))
    took = perf_counter() - began
    await client.all_answered()
    client.close()
    return {
        "sent_per_second": number / took, "answered": len(client.latencies), "failures": client.failures,
        "connections": client.connections, **percentiles(client.latencies), "client_late_ms": late * 1e3,
        "client_cpu_us": cpu_of(client, since=cpu),
    }  # fmt: skip


async def closed_loop(address: str, connections: int, seconds: float, body: bytes) -> dict[str, float]:
    """Keeps this number of requests in progress, to find the most that the server can handle."""
    client = Client(address, body)
    await client.connect(connections)
    cpu, began = process_time(), perf_counter()
    end = began + seconds

    def again() -> None:
        now = perf_counter()
        if now < end:
            client.post(now, again)

    for _ in range(connections):
        again()
    await asyncio.sleep(seconds)
    await client.all_answered()
    took = perf_counter() - began
    client.close()
    return {
        "per_second": len(client.latencies) / took, "answered": len(client.latencies), "failures": client.failures,
        **percentiles(client.latencies), "client_cpu_us": cpu_of(client, since=cpu),
    }  # fmt: skip


async def insert_loop(url: str, connections: int, seconds: float, _: bytes) -> dict[str, float]:
    """The baseline: one row for each transaction, over the same number of direct connections to PostgreSQL."""
    sessions: list[Any] = [await asyncpg.connect(url) for _ in range(connections)]
    latencies: list[float] = []
    for session in sessions:
        await session.execute(INSERT, [new_id()], [0], PAYLOAD)
    began = perf_counter()
    end = began + seconds

    async def insert(session: Any) -> None:
        while (asked := perf_counter()) < end:
            await session.execute(INSERT, [new_id()], [0], PAYLOAD)
            latencies.append(perf_counter() - asked)

    await asyncio.gather(*(insert(session) for session in sessions))
    took = perf_counter() - began
    for session in sessions:
        await session.close()
    return {"per_second": len(latencies) / took, **percentiles(latencies)}


def cpu_of(client: Client, *, since: float) -> float:
    """The client's own CPU time for each request, which the server and PostgreSQL could not use."""
    return (process_time() - since) / len(client.latencies) * 1e6


def percentiles(latencies: list[float]) -> dict[str, float]:
    ordered = sorted(latencies)
    shares = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "max_ms": 1.0}
    return {name: 1e3 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in shares.items()}


KINDS = {"open": open_loop, "closed": closed_loop, "insert": insert_loop}

if __name__ == "__main__":
    kind, address, number, seconds, *given = sys.argv[1:]
    body = given[0] if given else f'{{"task": "noop", "payload": {PAYLOAD}}}'
    # A garbage collection in the client would count as latency of the server.
    gc.freeze()
    gc.disable()
    print(json.dumps(uvloop.run(KINDS[kind](address, int(number), float(seconds), body.encode()))))
