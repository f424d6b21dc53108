"""The PostgreSQL of a chaos run: one server, or a primary with a synchronous standby that may be promoted."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg

from foliot.clock import SystemClock
from foliot.embedded import EmbeddedPostgres
from tests.chaos.disk import SmallDisk
from tests.support.postgres_pair import PostgresPair

SETTINGS = {
    "timezone": "America/Los_Angeles",
    # The kernel keeps the writes of a dead process, and no kernel dies here.
    "fsync": "off",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "max_connections": "400",
}
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Database(ABC):
    name: str
    """Of the database within the server."""

    @property
    @abstractmethod
    def url(self) -> str:
        """Of the server that accepts writes, past every proxy."""

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    async def stop(self) -> None: ...

    @abstractmethod
    async def connect(self) -> Streams: ...

    @abstractmethod
    async def crash(self, number: signal.Signals) -> None:
        """Ends the server that accepts writes."""

    @abstractmethod
    async def restart(self) -> None:
        """Starts it again after its end."""


class OneServer(Database):
    name = "foliot"

    def __init__(self, directory: Path, *, disk_bytes: int, say: Callable[[str], None]) -> None:
        """`disk_bytes`: the size of a disk of its own, which can be filled; 0: it has none."""
        self._server = EmbeddedPostgres(directory / "postgres", clock=SystemClock(), settings=SETTINGS)
        self._url = ""
        self.disk = SmallDisk.mounted(self._server.directory, disk_bytes, say) if disk_bytes else None

    @property
    def url(self) -> str:
        return self._url

    @property
    def has_ended(self) -> bool:
        return self._server.exited.is_set()

    async def start(self) -> None:
        self._url = await self._server.start()

    async def stop(self) -> None:
        await self._server.stop()
        if self.disk is not None:
            self.disk.unmount()

    async def connect(self) -> Streams:
        asked = parse_qs(urlsplit(self._url).query)
        return await asyncio.open_unix_connection(f"{asked['host'][0]}/.s.PGSQL.{asked['port'][0]}")

    async def crash(self, number: signal.Signals) -> None:
        os.kill(int((self._server.data / "postmaster.pid").read_text().split()[0]), number)
        await self._server.exited.wait()

    async def restart(self) -> None:
        await self._server.start()


class Pair(Database):
    """Clients reach the primary of the moment, as through the address that a cluster manager moves."""

    name = "postgres"

    def __init__(self) -> None:
        # Not below the directory of the history, which other users may not reach.
        self._directory = Path(tempfile.mkdtemp(prefix="foliot-chaos-pair-"))
        self.servers = PostgresPair(self._directory)

    @property
    def url(self) -> str:
        return f"postgresql://foliot@127.0.0.1:{self.servers.primary_port}/postgres?sslmode=disable"

    async def start(self) -> None:
        await self.servers.start(is_synchronous=True)

    async def stop(self) -> None:
        await asyncio.to_thread(self.servers.stop)
        shutil.rmtree(self._directory, ignore_errors=True)

    async def connect(self) -> Streams:
        return await asyncio.open_connection("127.0.0.1", self.servers.primary_port)

    async def crash(self, number: signal.Signals) -> None:
        await asyncio.to_thread(self.servers.kill_primary)

    async def restart(self) -> None:
        await self.servers.start_primary()


class Session:
    """Connects straight to PostgreSQL, past every proxy; can write even while PostgreSQL is read-only."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session: Any = None

    async def __aenter__(self) -> Any:
        self._session = await asyncpg.connect(
            self._url, timeout=5, server_settings={"default_transaction_read_only": "off"}
        )
        return self._session

    async def __aexit__(self, *_: object) -> None:
        self._session.terminate()
