"""The HTTP server: accepts connections while there is room, and closes idle ones to make room."""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn

from foliot.api.security.connection_limits import NO_PLACE, Connection, Connections, Limits
from foliot.config import Config

# The listener accepts at most this many connections before existing ones get a turn.
AT_ONCE = 32
# The system has no more files, or no more memory for them.
EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
PAUSE_SECONDS = 0.2
READ_MAX_BYTES = 65_536
# For standard streams, the event loop, listening sockets, and files that are read briefly.
FILES_RESERVED = 32
CONNECTIONS_MIN = 8


class Server(uvicorn.Server):
    """Leaves signals and connections to Foliot."""

    def __init__(self, config: uvicorn.Config, *, connections: Connections) -> None:
        super().__init__(config)
        self._connections = connections
        self._watching: asyncio.Task[None] | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        self._watching = asyncio.create_task(self._connections.watch(), name="watch connections")
        self.servers = [
            Listener(listening, self._connection, self._connections, tls=self.config.ssl)  # type: ignore[misc]
            for listening in sockets or ()
        ]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching

    def _connection(self) -> Connection:
        return Connection(
            self._connections, config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )


class Listener:
    """Accepts connections. Connections count even before their TLS handshake is complete."""

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[[], Connection],
        connections: Connections,
        *,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listening = listening
        self._make = make
        self._connections = connections
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._entering: dict[socket.socket, Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._resuming: asyncio.TimerHandle | None = None
        listening.setblocking(False)
        self._resume()

    def close(self) -> None:
        self._pause()
        for task in self._tasks:
            task.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _resume(self) -> None:
        self._resuming = None
        self._loop.add_reader(self._listening.fileno(), self._accept)

    def _pause(self) -> None:
        if self._resuming is not None:
            self._resuming.cancel()
        elif self._listening.fileno() != -1:
            self._loop.remove_reader(self._listening.fileno())

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, _address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in EXHAUSTED:
                    raise
                # The connection stays at the head of the queue, so the loop would retry at once and forever.
                self._make_room()
                self._pause()
                self._resuming = self._loop.call_later(PAUSE_SECONDS, self._resume)
                return
            if self._connections.number >= self._connections.limits.connections and not self._make_room():
                _refuse(accepted, is_plain=self._tls is None)
                continue
            connection = self._entering[accepted] = self._make()
            self._connections.number += 1
            task = self._loop.create_task(self._enter(accepted, connection), name="enter")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _make_room(self) -> bool:
        first = next(((accepted, one) for accepted, one in self._entering.items() if not one.is_made), None)
        if first is None or first[1].since > self._connections.longest_wait:
            return self._connections.make_room()
        with suppress(OSError):
            first[0].shutdown(socket.SHUT_RDWR)
        del self._entering[first[0]]
        return True

    async def _enter(self, accepted: socket.socket, connection: Connection) -> None:
        try:
            accepted.setblocking(False)
            seconds = None if self._tls is None else self._connections.limits.head_seconds
            await self._loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self._tls, ssl_handshake_timeout=seconds
            )
        except (OSError, asyncio.CancelledError):
            # The client has disconnected, or does not speak TLS.
            accepted.close()
        finally:
            self._entering.pop(accepted, None)
            if not connection.is_made:
                self._connections.number -= 1


def limits_of(config: Config) -> Limits:
    """The configured limits, but with at most as many connections as this process may have files open besides all
    others."""
    reserve = config.database_pool_size + FILES_RESERVED
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = config.connections_max + reserve
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return Limits(
        connections=config.connections_max
        if soft == resource.RLIM_INFINITY
        else max(CONNECTIONS_MIN, min(config.connections_max, soft - reserve)),
        head_bytes=config.request_head_max_bytes,
        head_seconds=config.request_head_seconds,
        body_seconds=config.request_body_seconds,
        idle_seconds=config.connection_idle_seconds,
        unread_seconds=config.response_unread_seconds,
    )


def _refuse(accepted: socket.socket, *, is_plain: bool) -> None:
    with suppress(OSError):
        accepted.setblocking(False)
        if is_plain:
            accepted.send(NO_PLACE)
            # Read what the client has sent already, or it would see a reset instead of the answer.
            accepted.shutdown(socket.SHUT_WR)
            accepted.recv(READ_MAX_BYTES)
    accepted.close()
