"""The proxy recognizes statements, and acts before or after one runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from foliot.config import Config
from foliot.errors import StoreUnavailable
from foliot.model.ids import new_id
from foliot.store.store import Store
from tests.chaos.door import Door
from tests.support.breakable_store import door_to, store_behind

QUEUES = {"default": 1}


@pytest.fixture
async def door(database_url: str) -> AsyncIterator[Door]:
    async with door_to(database_url) as door:
        yield door


@pytest.fixture
async def behind(door: Door, database_url: str) -> AsyncIterator[Store]:
    async with store_behind(door, database_url, config=Config(database_retry_seconds=1e-9)) as store:
        yield store


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_trap_springs_before_or_after_its_statement(door: Door, behind: Store, sql: Any, is_after: bool) -> None:
    sprung = []
    trap = door.set_trap("register_worker", is_after=is_after, spring=lambda: sprung.append(True))
    await behind.jobs.database_now()
    assert not sprung
    with pytest.raises(StoreUnavailable):
        await behind.workers.register_worker(new_id(), "worker", QUEUES, [])
    assert trap.sprung.is_set()
    assert sprung == [True]
    assert await sql.fetchval("select count(*) from foliot.workers") == int(is_after)
    # It springs only once.
    await behind.workers.register_worker(new_id(), "worker", QUEUES, [])


async def test_blocked_traffic_passes_after_the_door_is_healed(door: Door, behind: Store) -> None:
    await behind.jobs.database_now()
    door.jam()
    asking = asyncio.create_task(behind.jobs.database_now())
    done, _ = await asyncio.wait([asking], timeout=0.3)
    assert not done
    door.heal()
    await asking
