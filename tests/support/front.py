"""Stands in front of a server and plays its faults: killed, hung, or answering garbage."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Literal

from tests.support.ports import free_port

Fault = Literal["killed", "hung", "garbage"]
NOISE = os.urandom(65_536)
NOISE_TIMES = 16


class Front:
    """A TCP port of its own that forwards to a server while there is no fault.

    Killed: connections are refused. Hung: it accepts, reads nothing and never answers. Garbage: it answers each
    connection with a megabyte of noise, and keeps it open.
    """

    def __init__(self, there: int) -> None:
        self._there = there
        self._fault: Fault | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.port = free_port()

    async def set(self, fault: Fault | None) -> None:
        """Open connections stay open if the server hangs, and break otherwise."""
        self._fault = fault
        if fault != "hung":
            await self._break()
        if fault == "killed":
            await self._close()
        elif self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    async def close(self) -> None:
        await self._break()
        await self._close()

    async def _close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
            await server.wait_closed()

    async def _break(self) -> None:
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer), name="connection of a front")
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                if self._fault == "hung":
                    await asyncio.Event().wait()
                elif self._fault == "garbage":
                    for _ in range(NOISE_TIMES):
                        writer.write(NOISE)
                        await writer.drain()
                    await reader.read()
                else:
                    await self._forward(reader, writer)
        finally:
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._there)
        ways = [asyncio.create_task(self._copy(one, other)) for one, other in ((reader, back), (there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            back.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(1 << 16):
            if self._fault is not None:
                await asyncio.Event().wait()
            writer.write(chunk)
            await writer.drain()


@asynccontextmanager
async def front_of(port: int) -> AsyncIterator[Front]:
    front = Front(port)
    await front.set(None)
    try:
        yield front
    finally:
        await front.close()


class Packets:
    """A StatsD server that counts packets. Hung: it reads none. Garbage: it answers each with noise."""

    def __init__(self) -> None:
        self._fault: Fault | None = None
        self._socket: socket.socket | None = None
        self._port = free_port()
        self.arrived = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def set(self, fault: Fault | None) -> None:
        self._fault = fault
        self.close()
        if fault == "killed":
            return
        self._socket = socket.socket(type=socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(("127.0.0.1", self._port))
        if fault != "hung":
            asyncio.get_running_loop().add_reader(self._socket, self._read, self._socket)

    def close(self) -> None:
        found, self._socket = self._socket, None
        if found is not None:
            asyncio.get_running_loop().remove_reader(found)
            found.close()

    def _read(self, found: socket.socket) -> None:
        _, sender = found.recvfrom(65_536)
        self.arrived += 1
        if self._fault == "garbage":
            found.sendto(NOISE[:1_400], sender)


@contextmanager
def packets() -> Iterator[Packets]:
    made = Packets()
    made.set(None)
    try:
        yield made
    finally:
        made.close()
