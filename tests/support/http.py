"""A real HTTP server on the loopback interface: a test sets its answers and reads the requests it got."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

Answer = Callable[["Asked"], bytes]


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answering:
    port: int
    answers: dict[str, bytes] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    endless: set[str] = field(default_factory=set)
    sent: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def answer(status: str = "200 OK", body: bytes = b"", **headers: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Length: {len(body)}",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def answering(tls: ssl.SSLContext | None = None) -> AsyncIterator[Answering]:
    handling: set[asyncio.Task[None]] = set()
    here = Answering(0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handling.add(task)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *rest = head.rstrip().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            method, path, _ = first.split(" ")
            here.asked.append(Asked(method, path, headers, body))
            writer.write(here.answers.get(path, answer("404 Not Found")))
            while path in here.endless:
                writer.write(b"x" * 65_536)
                here.sent += 65_536
                await writer.drain()
            if path.startswith("/hang"):
                await reader.read()
        writer.close()
        handling.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    here.port = server.sockets[0].getsockname()[1]
    try:
        yield here
    finally:
        server.close()
        for task in handling:
            task.cancel()
        await asyncio.gather(*handling, return_exceptions=True)
        await server.wait_closed()
