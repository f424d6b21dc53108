"""Keeps this scheduler node a member in etcd or ZooKeeper, and knows which other members have gone.

A node counts as dead only if this one saw it as a member, in the session that it still has, and sees it no more. With a
new session it knows nothing about others: a service that was wiped has forgotten nodes that are alive. So without a
session there are no dead nodes and no count of members, and the leases in PostgreSQL decide.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from foliot.clock import Clock
from foliot.coordination.base import Coordinator, CoordinatorUnavailable, Session, SessionLost
from foliot.coordination.events import CoordinatorJoined, CoordinatorLost, MembersGone
from foliot.errors import ConfigurationError
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.service import Service, own_task

RETRY_SECONDS = 1.0
# A watch tells of changes at once. Looking again after this time helps if it has broken without an error.
LOOK_SECONDS = 3.0
DEAD_MAX = 1000


@dataclass(frozen=True, slots=True)
class View:
    """How the coordinator sees the scheduler nodes. Without a session, it sees nothing."""

    nodes: int | None = None
    dead: tuple[UUID, ...] = ()


class Membership(Service):
    def __init__(self, coordinator: Coordinator, *, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self.node = new_id()
        self.on_change: Callable[[], None] = lambda: None
        self.view = View()
        self._coordinator = coordinator
        self._label = f"{socket.gethostname()}:{os.getpid()}"
        self._members: frozenset[UUID] = frozenset()
        self._shards = self._published = ""
        self._is_lost = False

    def publish(self, shards: Iterable[int]) -> None:
        """Shows the shards of this node in the coordinator, soon."""
        self._shards = ",".join(map(str, sorted(shards)))
        self.wake()

    async def run_once(self) -> float:
        try:
            session = await self._coordinator.join(self.node, self._label)
        except (CoordinatorUnavailable, ConfigurationError) as error:
            self._lose(str(error))
            return RETRY_SECONDS
        self._published = ""
        try:
            await self._attend(session)
        except SessionLost as error:
            self._lose(str(error))
        finally:
            self._forget_members()
            await session.end()
        return RETRY_SECONDS

    async def _attend(self, session: Session) -> None:
        self._see(await session.members())
        self._is_lost = False
        self.events.emit(CoordinatorJoined(self._coordinator.name))
        while not self.stopping:
            self._woken.clear()
            if self._shards != self._published:
                await session.publish(self._shards)
                self._published = self._shards
            await self._first_of(session.changed(), self._woken.wait())
            self._see(await session.members())

    async def _first_of(self, *waits: Coroutine[Any, Any, object]) -> None:
        """Returns within `LOOK_SECONDS`. Raises the error of a wait that failed."""
        tasks = [own_task(wait, name="wait for members") for wait in waits]
        try:
            ended, _ = await asyncio.wait(tasks, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            for task in tasks:
                task.cancel()

    def _see(self, members: frozenset[UUID]) -> None:
        before, self._members = self._members, members
        gone = before - members
        dead = [node for node in self.view.dead if node not in members] + sorted(gone)
        view = View(len(members), tuple(dead[-DEAD_MAX:]))
        if gone:
            self.events.emit(MembersGone(len(gone)))
        if view != self.view:
            self.view = view
            self.on_change()

    def _lose(self, why: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            self.events.emit(CoordinatorLost(self._coordinator.name, why))

    def _forget_members(self) -> None:
        self._members, self.view = frozenset(), View()
        self.on_change()
