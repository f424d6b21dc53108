"""A store whose connection to PostgreSQL a test can cut before or after a given statement."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.events import EventBus
from foliot.store.store import Store, open_store
from tests.chaos.door import Door


@asynccontextmanager
async def door_to(database_url: str) -> AsyncIterator[Door]:
    asked = parse_qs(urlsplit(database_url).query)
    door = Door(lambda: asyncio.open_unix_connection(f"{asked['host'][0]}/.s.PGSQL.{asked['port'][0]}"))
    await door.open()
    try:
        yield door
    finally:
        await door.close()


@asynccontextmanager
async def store_behind(door: Door, database_url: str, *, config: Config) -> AsyncIterator[Store]:
    url = f"postgresql://foliot@127.0.0.1:{door.port}{urlsplit(database_url).path}?sslmode=disable"
    async with open_store(url, config=config, clock=SystemClock(), events=EventBus(), part="test") as store:
        yield store
