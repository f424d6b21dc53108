"""A TCP proxy between a process and a server, which can cut, block or slow connections, or drop one direction.

Before a database it reads what the client says, so it knows the statements by their names and can act right before one
is carried out, or right after, when its answer is on the way.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.support.proxy import ClientMessages
from tests.support.queries import all_queries

NAMES = {query.sql.encode(): query.name for query in all_queries()} | {b"commit\0": "commit"}
Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@dataclass(slots=True)
class Trap:
    """An action to take at a statement, once."""

    statement: str
    is_after: bool
    """Whether to act after the statement ran and before its answer arrives; otherwise before it runs."""
    spring: Callable[[], None]
    sprung: asyncio.Event


class Door:
    def __init__(self, connect: Connect, *, reads_statements: bool = True) -> None:
        self._connect = connect
        self._reads_statements = reads_statements
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server
        self._open = asyncio.Event()
        self._open.set()
        self._traps: list[Trap] = []
        self.port = 0
        self.delay_seconds = 0.0
        self.is_deaf = False
        """Drops the server's answers: a half-open connection."""
        self.is_shut = False
        """Refuses new connections."""

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self._server.close()
        self.cut()
        if self._connections:
            await asyncio.wait(self._connections)

    def cut(self) -> None:
        """Ends every connection at once."""
        for connection in self._connections:
            connection.cancel()

    def jam(self) -> None:
        """Stops forwarding without closing any connection."""
        self._open.clear()

    def heal(self) -> None:
        self._open.set()
        self._traps.clear()
        self.delay_seconds, self.is_deaf, self.is_shut = 0.0, False, False

    def set_trap(self, statement: str, *, is_after: bool, spring: Callable[[], None] = lambda: None) -> Trap:
        """Cuts the connection at the next such statement, and calls `spring`."""
        trap = Trap(statement, is_after, spring, asyncio.Event())
        self._traps.append(trap)
        return trap

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._pass(reader, writer), name="door")
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        ways: list[asyncio.Task[None]] = []
        try:
            if self.is_shut:
                return
            there, back = await self._connect()
            ends.append(back)
            for end in ends:
                with suppress(OSError, AttributeError):
                    end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            armed: list[Trap] = []
            ways = [
                asyncio.create_task(self._to_server(reader, back, armed), name="to the server"),
                asyncio.create_task(self._to_client(there, writer, armed), name="to the client"),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except (OSError, asyncio.CancelledError):
            # Cut, or no server: the client finds out by itself.
            pass
        finally:
            for way in ways:
                way.cancel()
            if ways:
                await asyncio.wait(ways)
            for end in ends:
                end.transport.abort()

    async def _to_server(self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, armed: list[Trap]) -> None:
        messages = ClientMessages()
        with suppress(OSError):
            while chunk := await reader.read(1 << 16):
                for text in messages.executed(chunk) if self._reads_statements else ():
                    trap = self._trap_at(text)
                    if trap is not None and trap.is_after:
                        armed.append(trap)
                    elif trap is not None:
                        trap.spring()
                        trap.sprung.set()
                        return
                await self._hold_up()
                back.write(chunk)

    async def _to_client(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, armed: list[Trap]) -> None:
        with suppress(OSError):
            while chunk := await there.read(1 << 16):
                if armed:
                    armed[0].spring()
                    armed[0].sprung.set()
                    return
                await self._hold_up()
                if not self.is_deaf:
                    writer.write(chunk)

    def _trap_at(self, text: bytes) -> Trap | None:
        name = NAMES.get(text) if self._traps else None
        for trap in self._traps:
            if trap.statement == name:
                self._traps.remove(trap)
                return trap
        return None

    async def _hold_up(self) -> None:
        if not self._open.is_set():
            await self._open.wait()
        if self.delay_seconds:
            await asyncio.sleep(self.delay_seconds)
