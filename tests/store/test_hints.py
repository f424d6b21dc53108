from __future__ import annotations

import asyncio
from typing import Any

from foliot.events import EventBus
from foliot.store.hints import HintListener
from foliot.store.store import Store
from tests.support.waiting import PATIENCE_SECONDS


async def test_hints_arrive_and_are_merged(store: Store, events: EventBus) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    listener = HintListener(
        store.database, store.database.url, heard.put_nowait, clock=store.database.clock, events=events
    )
    await listener.start()
    while not listener.is_listening:
        await asyncio.sleep(0.01)
    store.hints.send(["a"])
    assert await heard.get() == "a"
    for _ in range(100):
        store.hints.send(["a", "b"])
    assert sorted([await heard.get(), await heard.get()]) == ["a", "b"]
    assert heard.empty()
    await listener.stop()


async def test_a_listener_reconnects_after_its_session_died(store: Store, events: EventBus, sql: Any) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    listener = HintListener(
        store.database, store.database.url, heard.put_nowait, clock=store.database.clock, events=events
    )
    await listener.start()
    while not listener.is_listening:
        await asyncio.sleep(0.01)
    await sql.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where query ilike 'listen%' and datname = "
        "current_database()"
    )
    async with asyncio.timeout(PATIENCE_SECONDS):
        while heard.empty():
            store.hints.send(["a"])
            await asyncio.sleep(0.02)
    await listener.stop()
