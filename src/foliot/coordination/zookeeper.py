"""ZooKeeper 3.5 or newer, by kazoo.

A member is the ephemeral node `/<prefix>/members/<id>`, and a worker is `/<prefix>/workers/<id>`. Kazoo has threads of
its own; its calls run in threads here, and its watches come back to the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from uuid import UUID

from kazoo import exceptions as errors
from kazoo.client import KazooClient, KazooState
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

from foliot.clock import Clock
from foliot.config import place_of
from foliot.coordination.base import (
    ANSWER_SECONDS,
    Coordinator,
    CoordinatorUnavailable,
    Presence,
    Session,
    SessionLost,
    node_of,
)
from foliot.errors import ConfigurationError

T = TypeVar("T")

CONNECT_SECONDS = 3.0
# Kazoo logs passwords at its lowest level. Foliot reports losses of the connection by events of its own.
SILENT = logging.Logger("kazoo", logging.CRITICAL + 1)
RETRY_SECONDS = 0.3
REFUSALS = (errors.NoAuthError, errors.AuthFailedError, errors.InvalidACLError)


class ZooKeeperCoordinator(Coordinator):
    name = "zookeeper"

    def __init__(self, *, url: str, prefix: str, session_seconds: float, clock: Clock) -> None:
        place = place_of(url)
        self._hosts = ",".join(place.hosts) + place.path
        self._secret = f"{place.user}:{place.password}" if place.user else ""
        self._acl = [make_digest_acl(place.user, place.password, all=True)] if place.user else OPEN_ACL_UNSAFE
        self._root = f"/{prefix}"
        self._session_seconds = session_seconds
        self._clock = clock
        self._reader: KazooClient | None = None
        """Reads the entries of workers."""

    async def connect(self) -> None:
        client = await self._client()
        await close(client)

    async def join(self, node: UUID, label: str) -> Session:
        client = await self._client()
        members, own = f"{self._root}/members", f"{self._root}/members/{node}"

        def enter() -> None:
            with suppress(errors.NoNodeError):
                # Of a session of this process that has not expired yet.
                done(client.delete_async(own))
            done(client.create_async(own, label.encode(), acl=self._acl, ephemeral=True))

        try:
            await in_thread(enter)
        except BaseException:
            await close(client)
            raise
        seconds = self._session_seconds
        return ZooKeeperSession(client, node, members, f"{self._root}/shards/{node}", self._acl, seconds, self._clock)

    async def appear(self, presence_id: UUID, label: str) -> Presence:
        client, own = await self._client(), f"{self._root}/workers/{presence_id}"
        try:
            await in_thread(lambda: done(client.create_async(own, label.encode(), acl=self._acl, ephemeral=True)))
        except BaseException:
            await close(client)
            raise
        return ZooKeeperPresence(client, own)

    async def present(self) -> frozenset[UUID]:
        if self._reader is None:
            self._reader = await self._client()
        client, workers = self._reader, f"{self._root}/workers"

        def read() -> list[str]:
            # A server of ZooKeeper may lag behind the others until then.
            done(client.sync_async(workers))
            names: list[str] = done(client.get_children_async(workers))
            return names

        try:
            names = await in_thread(read)
        except BaseException:
            self._reader = None
            await close(client)
            raise
        return frozenset(node for name in names if (node := node_of(name)) is not None)

    async def close(self) -> None:
        """Each session has a connection of its own."""
        if self._reader is not None:
            await close(self._reader)
            self._reader = None

    async def _client(self) -> KazooClient:
        """A connected client, for which the paths exist."""
        client = KazooClient(
            self._hosts,
            timeout=self._session_seconds,
            auth_data=[("digest", self._secret)] if self._secret else None,
            # A client that can't reconnect within its session is replaced by a new one.
            connection_retry={"max_tries": -1, "max_delay": 1.0},
            logger=SILENT,
        )

        def begin() -> None:
            client.start(CONNECT_SECONDS)
            for name in ("members", "shards", "workers"):
                done(client.ensure_path_async(f"{self._root}/{name}", acl=self._acl))
                done(client.get_children_async(f"{self._root}/{name}"))

        try:
            await in_thread(begin)
        except BaseException:
            await close(client)
            raise
        return client


class ZooKeeperSession(Session):
    def __init__(
        self, client: KazooClient, node: UUID, members: str, shards: str, acl: list[Any], seconds: float, clock: Clock
    ) -> None:
        self._client = client
        self._node = node
        self._members = members
        self._shards = shards
        self._acl = acl
        self._seconds = seconds
        self._clock = clock
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._is_expired = False
        self._disconnected_at: float | None = None
        client.add_listener(self._on_state)

    async def members(self) -> frozenset[UUID]:
        self._news.clear()
        names = await self._asked(lambda: done(self._client.get_children_async(self._members, watch=self._on_watch)))
        found = frozenset(node for name in names if (node := node_of(name)) is not None)
        if self._node not in found:
            raise SessionLost("ZooKeeper has forgotten this node")
        return found

    async def changed(self) -> None:
        await self._news.wait()
        self._check()

    async def publish(self, shards: str) -> None:
        def put() -> None:
            try:
                done(self._client.set_async(self._shards, shards.encode()))
            except errors.NoNodeError:
                done(self._client.create_async(self._shards, shards.encode(), acl=self._acl, ephemeral=True))

        await self._asked(put)

    async def end(self) -> None:
        self._client.remove_listener(self._on_state)
        await close(self._client)

    async def _asked(self, call: Callable[[], T]) -> T:
        """A call that is repeated while the session may last."""
        while True:
            self._check()
            try:
                return await in_thread(call)
            except CoordinatorUnavailable:
                await self._clock.sleep(RETRY_SECONDS)
            except ConfigurationError as error:
                raise SessionLost(str(error)) from error

    def _check(self) -> None:
        if self._is_expired:
            raise SessionLost("the session in ZooKeeper has expired")
        since = self._disconnected_at
        if since is not None and self._clock.monotonic() - since > self._seconds:
            raise SessionLost("ZooKeeper does not answer")

    def _on_state(self, state: str) -> None:
        """Called in a thread of kazoo."""
        self._is_expired = self._is_expired or state == KazooState.LOST
        if state == KazooState.CONNECTED:
            self._disconnected_at = None
        elif self._disconnected_at is None:
            self._disconnected_at = self._clock.monotonic()
        self._notify()

    def _on_watch(self, _event: object) -> None:
        self._notify()

    def _notify(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._news.set)
        except RuntimeError:
            # The loop is closed.
            return


class ZooKeeperPresence(Presence):
    """The connection keeps the session alive by itself. A new session of the client does not bring back the entry."""

    def __init__(self, client: KazooClient, own: str) -> None:
        self._client = client
        self._own = own

    async def renew(self) -> bool:
        def look() -> bool:
            done(self._client.sync_async(self._own))
            return done(self._client.exists_async(self._own)) is not None

        try:
            return await in_thread(look)
        except ConfigurationError:
            return False

    async def end(self) -> None:
        await close(self._client)


def done(asked: Any) -> Any:
    """The answer to a request, which a client without a connection would await for ever."""
    return asked.get(timeout=ANSWER_SECONDS)


async def in_thread(call: Callable[[], T]) -> T:
    """Runs a call of kazoo in a thread, with its errors as those of a coordinator."""
    try:
        return await asyncio.to_thread(call)
    except REFUSALS as error:
        raise ConfigurationError(
            f"coordination_url: ZooKeeper refuses the user or password: {type(error).__name__}"
        ) from None
    except (errors.KazooException, KazooTimeoutError, OSError) as error:
        raise CoordinatorUnavailable(f"ZooKeeper: {type(error).__name__}: {error}") from error


async def close(client: KazooClient) -> None:
    """Ends the session at once, if ZooKeeper answers."""

    def end() -> None:
        client.stop()
        client.close()

    await asyncio.to_thread(end)
