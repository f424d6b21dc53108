"""A TCP proxy to the test server that can drop an answer or stop forwarding. It parses messages to cut at a
statement."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit


class ClientMessages:
    """Recognizes the executed statement in the bytes that a client sends."""

    def __init__(self) -> None:
        self._buffer = b""
        self._is_started = False
        self._statements: dict[bytes, bytes] = {}
        self._bound = b""

    def executed(self, chunk: bytes) -> Iterator[bytes]:
        """The text of each statement whose execution these bytes complete."""
        self._buffer += chunk
        if not self._is_started:
            # The first message has no type, only a length.
            self._buffer = self._buffer[struct.unpack("!I", self._buffer[:4])[0] :]
            self._is_started = True
        while len(self._buffer) >= 5 and len(self._buffer) >= (size := 1 + struct.unpack("!I", self._buffer[1:5])[0]):
            kind, body, self._buffer = self._buffer[:1], self._buffer[5:size], self._buffer[size:]
            if kind == b"P":
                name, text = body.split(b"\0")[:2]
                self._statements[name] = text
            elif kind == b"B":
                self._bound = self._statements[body.split(b"\0")[1]]
            elif kind == b"E":
                yield self._bound
            elif kind == b"Q":
                yield body


class Proxy:
    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self._swallow: bytes | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.swallowed = asyncio.Event()
        self.is_silent = False

    def swallow_answer_to(self, statement: str) -> None:
        """Executes the next statement that contains this text, drops its answer and cuts the connection."""
        self._swallow = statement.encode()
        self.swallowed.clear()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._connect(reader, writer), name="proxied connection")
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def close(self) -> None:
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(self._socket_path)
        is_cut = asyncio.Event()
        ways = [
            asyncio.create_task(self._to_server(reader, back, is_cut), name="to server"),
            asyncio.create_task(self._to_client(there, writer, is_cut), name="to client"),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.wait(ways)
            for end in (back, writer):
                end.close()

    async def _to_server(self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, is_cut: asyncio.Event) -> None:
        messages = ClientMessages()
        while chunk := await reader.read(1 << 16):
            for statement in messages.executed(chunk):
                if self._swallow is not None and self._swallow in statement:
                    self._swallow = None
                    is_cut.set()
            back.write(chunk)

    async def _to_client(
        self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, is_cut: asyncio.Event
    ) -> None:
        while chunk := await there.read(1 << 16):
            if is_cut.is_set():
                self.swallowed.set()
                return
            while self.is_silent:
                await asyncio.sleep(0.01)
            writer.write(chunk)


@asynccontextmanager
async def proxy_to(url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """Starts a proxy, and yields the URL of the same database through it."""
    parts = urlsplit(url)
    asked = parse_qs(parts.query)
    proxy = Proxy(f"{asked['host'][0]}/.s.PGSQL.{asked['port'][0]}")
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield proxy, f"postgresql://{parts.username}@127.0.0.1:{port}{parts.path}?sslmode=disable"
    finally:
        server.close()
        await proxy.close()
