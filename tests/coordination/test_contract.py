"""The rules that every coordinator follows, on real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from foliot.coordination.base import CoordinatorUnavailable, Session, SessionLost
from foliot.model.ids import new_id
from tests.support.coordination.server import CoordinatorServer
from tests.support.cuttable import cuttable
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.timeout(300)


@asynccontextmanager
async def joined(server: CoordinatorServer, **settings: Any) -> AsyncIterator[tuple[UUID, Session]]:
    coordinator, node = server.coordinator(**settings), new_id()
    session = await coordinator.join(node, "host:1")
    try:
        yield node, session
    finally:
        await session.end()
        await coordinator.close()


async def until_members(session: Session, expected: set[UUID]) -> None:
    """Follows the changes, as a scheduler node does."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await session.members() != expected:
            await session.changed()


async def until_lost(session: Session) -> None:
    async def follow() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await session.members():
                await session.changed()

    with pytest.raises(SessionLost):
        await follow()


async def test_members_see_each_other_come_and_go(server: CoordinatorServer) -> None:
    settings = server.settings()
    async with joined(server, **settings) as (one, first):
        assert await first.members() == {one}
        async with joined(server, **settings) as (two, second):
            assert await second.members() == {one, two}
            await until_members(first, {one, two})
        await until_members(first, {one})


async def test_installations_with_other_prefixes_do_not_meet(server: CoordinatorServer) -> None:
    async with joined(server) as (one, first), joined(server) as (two, second):
        assert await first.members() == {one}
        assert await second.members() == {two}


async def test_a_dead_host_of_several_does_not_matter(server: CoordinatorServer) -> None:
    url = server.url.replace("@", f"@127.0.0.1:{free_port()},")
    async with joined(server, coordination_url=url) as (one, first):
        assert await first.members() == {one}


async def test_entries_of_somebody_else_are_no_members(server: CoordinatorServer) -> None:
    settings = server.settings()
    async with joined(server, **settings) as (one, first):
        await server.forge(settings["coordination_prefix"], "backup")
        assert await first.members() == {one}


async def test_shards_are_shown_until_the_session_ends(server: CoordinatorServer) -> None:
    settings = server.settings()
    async with joined(server, **settings) as (_, session):
        await session.publish("0,1,2")
        await session.publish("0,1")
        assert await server.shards(settings["coordination_prefix"]) == ["0,1"]
    assert await server.shards(settings["coordination_prefix"]) == []


async def test_a_node_that_is_cut_off_is_gone_for_the_others_and_learns_it(server: CoordinatorServer) -> None:
    settings = server.settings()
    async with cuttable(server.port) as proxy:
        behind = settings | {"coordination_url": server.url_at(proxy.port)}
        async with joined(server, **settings) as (one, first), joined(server, **behind) as (two, second):
            await until_members(first, {one, two})
            proxy.cut()
            await until_lost(second)
            await until_members(first, {one})
            proxy.heal()
            async with joined(server, **behind) as (three, third):
                assert await third.members() == {one, three}


async def test_a_short_cut_ends_no_session(server: CoordinatorServer) -> None:
    settings = server.settings() | {"coordination_session_seconds": 10.0}
    async with cuttable(server.port) as proxy:
        behind = settings | {"coordination_url": server.url_at(proxy.port)}
        async with joined(server, **behind) as (one, first):
            assert await first.members() == {one}
            proxy.cut()
            asking = asyncio.create_task(first.members(), name="ask behind the cut")
            await asyncio.sleep(1.5)
            proxy.heal()
            assert await asking == {one}
            async with joined(server, **settings) as (two, _):
                await until_members(first, {one, two})


async def test_sessions_end_with_a_server_that_is_killed_or_wiped(server: CoordinatorServer) -> None:
    settings = server.settings()
    async with joined(server, **settings) as (one, first):
        assert await first.members() == {one}
        server.kill()
        await until_lost(first)
        coordinator = server.coordinator(**settings)
        with pytest.raises(CoordinatorUnavailable):
            await coordinator.connect()
        with pytest.raises(CoordinatorUnavailable):
            await coordinator.join(new_id(), "host:1")
        await coordinator.close()
        await asyncio.to_thread(server.start)
    async with joined(server, **settings) as (two, second):
        await until_members(second, {two})
        await asyncio.to_thread(server.wipe)
        await until_lost(second)
    async with joined(server, **settings) as (three, third):
        assert await third.members() == {three}


async def test_sessions_end_with_a_server_that_is_frozen_and_nodes_come_back(server: CoordinatorServer) -> None:
    settings = server.settings()
    async with joined(server, **settings) as (one, first):
        assert await first.members() == {one}
        server.freeze()
        try:
            await until_lost(first)
        finally:
            server.thaw()

    async def comes_back() -> bool:
        try:
            async with joined(server, **settings) as (two, second):
                await until_members(second, {two})
                return True
        except CoordinatorUnavailable:
            return False

    await until(comes_back)
