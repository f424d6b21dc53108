"""The entries of workers, on real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from foliot.coordination.base import Coordinator, CoordinatorUnavailable, Presence
from foliot.model.ids import new_id
from tests.support.coordination.server import CoordinatorServer
from tests.support.cuttable import cuttable
from tests.support.waiting import until

pytestmark = pytest.mark.timeout(300)


@asynccontextmanager
async def appeared(server: CoordinatorServer, **settings: Any) -> AsyncIterator[tuple[Coordinator, UUID, Presence]]:
    coordinator, presence_id = server.coordinator(**settings), new_id()
    presence = await coordinator.appear(presence_id, "host:1")
    try:
        yield coordinator, presence_id, presence
    finally:
        await presence.end()
        await coordinator.close()


async def until_gone(coordinator: Coordinator, presence_id: UUID) -> None:
    async def look() -> bool:
        return presence_id not in await coordinator.present()

    await until(look)


async def is_lost(presence: Presence) -> bool:
    """Whether a worker would give the entry up."""
    try:
        return not await presence.renew()
    except CoordinatorUnavailable:
        return True


async def test_entries_of_workers_come_and_go(server: CoordinatorServer) -> None:
    settings = server.settings()
    async with appeared(server, **settings) as (coordinator, one, presence):
        assert await presence.renew()
        assert await coordinator.present() == {one}
        async with appeared(server, **settings) as (_, two, _):
            assert await coordinator.present() == {one, two}
        assert await coordinator.present() == {one}


async def test_an_entry_that_somebody_removed_is_gone_for_ever(server: CoordinatorServer) -> None:
    settings = server.settings()
    async with appeared(server, **settings) as (coordinator, one, presence):
        assert await presence.renew()
        await server.remove_worker(settings["coordination_prefix"], str(one))
        assert not await presence.renew()
        assert not await presence.renew()
        assert await coordinator.present() == frozenset()


async def test_a_worker_that_is_cut_off_disappears_and_learns_it(server: CoordinatorServer) -> None:
    settings = server.settings()
    async with cuttable(server.port) as proxy:
        behind = settings | {"coordination_url": server.url_at(proxy.port)}
        other = server.coordinator(**settings)
        async with appeared(server, **behind) as (_, one, presence):
            assert await presence.renew()
            assert await other.present() == {one}
            proxy.cut()
            await until(lambda: is_lost(presence))
            await until_gone(other, one)
            proxy.heal()
        await other.close()


async def test_entries_end_with_a_server_that_is_wiped(server: CoordinatorServer) -> None:
    settings = server.settings()
    async with appeared(server, **settings) as (coordinator, one, presence):
        assert await coordinator.present() == {one}
        await asyncio.to_thread(server.wipe)
        await until(lambda: is_lost(presence))

        async def is_empty() -> bool:
            try:
                return await coordinator.present() == frozenset()
            except CoordinatorUnavailable:
                return False

        await until(is_empty)


async def test_a_server_that_is_killed_or_frozen_gives_no_answer(server: CoordinatorServer) -> None:
    async with appeared(server) as (coordinator, _, presence):
        assert await presence.renew()
        server.freeze()
        try:
            assert await is_lost(presence)
            with pytest.raises(CoordinatorUnavailable):
                await coordinator.present()
        finally:
            server.thaw()
        server.kill()
        assert await is_lost(presence)
        with pytest.raises(CoordinatorUnavailable):
            await coordinator.present()
        await asyncio.to_thread(server.start)
