"""The lock under which one gatekeeper at a time admits runs and sends probes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from foliot.store import queries
from foliot.store.postgres import Database

# The letters of "gate". Advisory locks share one number space in a database.
GATES_LOCK = 0x67617465


@asynccontextmanager
async def gates_locked(database: Database) -> AsyncIterator[Any]:
    """Yields a session whose transaction holds the lock, or None while another gatekeeper holds it."""
    async with database.transaction(statement_seconds=30) as session:
        yield session if await session.fetchval(queries.load("gatekeeper_lock")["take_gates"].sql, GATES_LOCK) else None
