"""The one PostgreSQL of a test run, and databases cloned from a migrated template."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.embedded import EmbeddedPostgres
from foliot.events import EventBus
from foliot.store.store import open_store

TEMPLATE = "foliot_template"
# Not UTC, so that code which ignores time zones fails here. Not durable, because the data is temporary. Little WAL,
# because it is in memory. Few buffers, because dropping a database scans all of them.
SETTINGS = {
    "timezone": "America/Los_Angeles",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum_naptime": "60s",
    "max_wal_size": "256MB",
    "shared_buffers": "64MB",
}


CONNECTED = "select application_name || ': ' || query from pg_stat_activity where datname = $1"


class PostgresServer:
    def __init__(self, directory: Path) -> None:
        # TEST_PG_BIN chooses the PostgreSQL, so that the same tests run on every supported version.
        binaries = os.environ.get("TEST_PG_BIN", "")
        self._server = EmbeddedPostgres(directory, clock=SystemClock(), binaries=binaries, settings=SETTINGS)
        self._runner = asyncio.Runner()
        self._numbers = itertools.count(1)
        self.url = ""

    def start(self) -> None:
        self.url = self._runner.run(self._server.start())
        self._runner.run(self._make_template())

    def stop(self) -> None:
        self._runner.run(self._server.stop())
        self._runner.close()

    @property
    def pid(self) -> int:
        return int((self._server.data / "postmaster.pid").read_text().split()[0])

    def url_of(self, database: str) -> str:
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{database}"))

    async def clone(self) -> str:
        """Creates a migrated database, and returns its name."""
        name = f"test_{next(self._numbers)}"
        # The checkpoint that this strategy needs is cheap here, and the copy takes half the time.
        await self.admin(f"create database {name} template {TEMPLATE} strategy file_copy")
        return name

    async def empty(self) -> str:
        """Creates a database without migrations."""
        name = f"test_{next(self._numbers)}"
        await self.admin(f"create database {name}")
        return name

    async def drop(self, name: str) -> list[str]:
        """Drops a database, and returns the connections that were still open."""
        async with self._admin_session() as session:
            # A session that has just closed stays listed until its process has exited.
            for _ in range(1000):
                left = await session.fetch(CONNECTED, name)
                if not left:
                    break
                await asyncio.sleep(0.02)
            await session.execute(f"drop database if exists {name} with (force)")
        return [row[0] for row in left]

    async def admin(self, sql: str, *arguments: object) -> list[Any]:
        async with self._admin_session() as session:
            rows: list[Any] = await session.fetch(sql, *arguments)
            return rows

    @asynccontextmanager
    async def _admin_session(self) -> AsyncIterator[Any]:
        session = await asyncpg.connect(self.url_of("postgres"))
        try:
            yield session
        finally:
            await session.close()

    async def _make_template(self) -> None:
        await self.admin(f"create database {TEMPLATE}")
        around = {"config": Config(), "clock": SystemClock(), "events": EventBus()}
        async with open_store(self.url_of(TEMPLATE), part="template", **around) as store:  # type: ignore[arg-type]
            await store.migrate()
