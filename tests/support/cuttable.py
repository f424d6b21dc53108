"""A TCP proxy to any server. It can stop forwarding without closing a connection, as a network partition does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class CuttableProxy:
    def __init__(self, port: int) -> None:
        self._there = port
        self._connections: set[asyncio.Task[None]] = set()
        self._forwards = asyncio.Event()
        self._forwards.set()
        self.port = 0

    def cut(self) -> None:
        """Swallows everything from now on. Connections stay open."""
        self._forwards.clear()

    def heal(self) -> None:
        """Forwards again, on new connections only: the bytes of the old ones are lost."""
        for connection in self._connections:
            connection.cancel()
        self._forwards.set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._connect(reader, writer), name="cuttable connection")
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def close(self) -> None:
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        ways: list[asyncio.Task[None]] = []
        try:
            await self._forwards.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self._there)
            writers.append(back)
            ways = [
                asyncio.create_task(self._forward(reader, back), name="to the server"),
                asyncio.create_task(self._forward(there, writer), name="to the client"),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except (OSError, asyncio.CancelledError):
            # The client finds out by itself.
            pass
        finally:
            for way in ways:
                way.cancel()
            if ways:
                await asyncio.wait(ways)
            for end in writers:
                end.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(1 << 16):
                await self._forwards.wait()
                writer.write(chunk)


@asynccontextmanager
async def cuttable(port: int) -> AsyncIterator[CuttableProxy]:
    """A proxy to a port of this machine."""
    proxy = CuttableProxy(port)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()
