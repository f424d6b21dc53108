"""Heartbeats of a worker that is alive in etcd or ZooKeeper, so that it rarely writes to PostgreSQL.

The worker keeps an *entry* in the coordinator. While the entry is there, its lease in PostgreSQL is long, and renewed
rarely. When the entry is gone, `scheduler/worker_sessions.py` ends the lease, and the reaper releases the runs.

PostgreSQL stays the truth: a lease that may end early names the entry, and only this name allows that. The rules that
keep two workers from running one run, whatever the coordinator forgets, invents or withholds:

- An entry has a new id, is written before PostgreSQL knows it, and never comes back. So an entry that PostgreSQL names
  and the coordinator lacks is gone for ever.
- The worker trusts an entry for `coordination_session_seconds`, less a margin, from before it asked whether the entry
  is there. A scheduler node waits as long from the moment at which it saw that the entry is missing. The clock of the
  coordinator, and the time at which it expires sessions, decide nothing.
- A worker whose entry is gone, or that gets no answer, never uses that entry again. It renews its lease in PostgreSQL
  at once, without an entry and for the usual `worker_ttl_seconds`. That removes the entry's name from its row, so
  nobody ends this lease early. If PostgreSQL does not answer either, the worker stops its attempts when its trust ends.
- A lease that names an entry can't end early before the lease that it replaced: the worker may still trust that one, if
  the answer of PostgreSQL got lost.
- The worker never trusts an entry for longer than its lease in PostgreSQL.

So a coordinator that is killed, frozen, cut off or wiped makes every worker beat in PostgreSQL as without it, within a
third of a session and a second, and a worker that dies meanwhile is found by its lease. A worker that died before that
is found when its long lease ends.

A run that is cancelled, or a request to drain, arrives by a hint, which makes the worker beat at once. A worker that
runs something also reads them every `worker_beat_seconds`, without a write.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from foliot.clock import Clock
from foliot.config import Config
from foliot.coordination.base import ANSWER_SECONDS, Coordinator, CoordinatorUnavailable, Presence
from foliot.coordination.events import CoordinatorJoined, CoordinatorLost
from foliot.errors import ConfigurationError, StoreUnavailable
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.service import own_task
from foliot.store.workers import Beat, CoordinatedLease, Workers

Key = tuple[UUID, int]
LONG_LEASES = 8
"""The lease of a worker with an entry, in leases. It is renewed after a third of it."""
MARGIN_SHARE = 0.2
"""The part of the long lease that the worker does not trust."""
ANSWER_SHARE = 0.2
"""The part of a session that the coordinator, and then PostgreSQL, may take for an answer."""
APPEAR_SECONDS = 5.0
"""Between two tries to make an entry."""
END_SECONDS = 2.0


class CoordinatedBeats:
    def __init__(
        self, workers: Workers, coordinator: Coordinator, *, config: Config, clock: Clock, events: EventBus
    ) -> None:
        self._workers = workers
        self._coordinator = coordinator
        self._config = config
        self._clock = clock
        self._events = events
        self._label = f"{socket.gethostname()}:{os.getpid()}"
        self._session_seconds = config.coordination_session_seconds
        self._long_seconds = LONG_LEASES * config.worker_ttl_seconds
        self._worker_id: UUID | None = None
        self._lease: CoordinatedLease | None = None
        """The entry that PostgreSQL knows. None: a lease without an entry."""
        self._presence: Presence | None = None
        """Its entry, or one that PostgreSQL does not know yet."""
        self._presence_id = new_id()
        self._appearing: asyncio.Task[None] | None = None
        self._appear_at = 0.0
        self._beat_at = self._look_at = self._early_until = self._lease_until = 0.0
        self._last = Beat(True, {})
        self._is_lost = False
        self._under_way: set[asyncio.Task[None]] = set()

    async def beat(self, worker_id: UUID, held: Sequence[Key], left_running: int = 0) -> Beat:
        if worker_id != self._worker_id:
            # A new registration, whose lease names no entry.
            self._worker_id = worker_id
            self._forget()
        if self._presence is not None:
            asked_at = self._clock.monotonic()
            why_not = await self._look_for(self._presence)
            if not why_not:
                return await self._beat_with_entry(asked_at, worker_id, held, left_running)
            self._forget()
            self._lose(why_not)
        beat = await self._workers.beat(worker_id, held, left_running)
        if self._appearing is None and self._clock.monotonic() >= self._appear_at:
            self._appearing = own_task(self._appear(), name="appear")
        return beat

    async def close(self) -> None:
        if self._appearing is not None:
            self._appearing.cancel()
            await asyncio.wait([self._appearing])
        self._forget()
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def _look_for(self, presence: Presence) -> str:
        """Why the entry can't be relied on; empty if it is there."""
        try:
            async with asyncio.timeout(min(ANSWER_SECONDS, ANSWER_SHARE * self._session_seconds)):
                return "" if await presence.renew() else "the entry of this worker is gone"
        except TimeoutError:
            return "no answer"
        except CoordinatorUnavailable as error:
            return str(error)

    async def _beat_with_entry(self, asked_at: float, worker_id: UUID, held: Sequence[Key], left_running: int) -> Beat:
        presence = self._presence
        if self._lease is None:
            try:
                await self._renew(asked_at, worker_id, held, left_running)
            except BaseException:
                # PostgreSQL may know the entry or not. A heartbeat that was given up has no say about a later entry.
                if self._presence is presence:
                    self._forget()
                raise
        else:
            # The long lease outlasts some trouble of PostgreSQL.
            self._last = replace(self._last, to_end={}, owns_unheld=False)
            if asked_at >= self._beat_at or asked_at < self._early_until:
                await self._try(self._renew(asked_at, worker_id, held, left_running))
            elif held and asked_at >= self._look_at:
                await self._try(self._look(asked_at, worker_id, held, self._lease.session_id))
        if not self._last.is_renewed:
            return self._last
        pause = self._session_seconds / 3
        self._early_until = asked_at + pause * 0.9
        trusted = min(self._session_seconds, self._lease_until - asked_at)
        return replace(self._last, lease_seconds=trusted, next_seconds=pause)

    async def _try(self, work: Coroutine[Any, Any, None]) -> None:
        """Does not wait for PostgreSQL, nor for the end of a statement that is given up, which may need an answer."""
        task = own_task(work, name="ask PostgreSQL")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            await asyncio.wait([task], timeout=ANSWER_SHARE * self._session_seconds)
        finally:
            task.cancel()
        if task.done():
            with suppress(StoreUnavailable):
                task.result()

    async def _look(self, asked_at: float, worker_id: UUID, held: Sequence[Key], session_id: UUID) -> None:
        self._last = await self._workers.look(worker_id, held, session_id)
        self._look_at = asked_at + self._config.worker_beat_seconds

    async def _renew(self, asked_at: float, worker_id: UUID, held: Sequence[Key], left_running: int) -> None:
        """Renews the long lease."""
        lease = self._lease or CoordinatedLease(self._presence_id, self._session_seconds, self._long_seconds)
        self._last = await self._workers.beat(worker_id, held, left_running, coordinated=lease)
        if not self._last.is_renewed:
            return
        if self._lease is None:
            self._lease, self._is_lost = lease, False
            self._events.emit(CoordinatorJoined(self._coordinator.name))
        self._beat_at, self._look_at = asked_at + self._long_seconds / 3, asked_at + self._config.worker_beat_seconds
        self._lease_until = asked_at + self._long_seconds * (1 - MARGIN_SHARE)

    async def _appear(self) -> None:
        """Makes a new entry. The next heartbeat tells PostgreSQL."""
        presence_id = new_id()
        try:
            self._presence = await self._coordinator.appear(presence_id, self._label)
            self._presence_id = presence_id
        except (CoordinatorUnavailable, ConfigurationError) as error:
            self._lose(str(error))
        finally:
            self._appear_at = self._clock.monotonic() + APPEAR_SECONDS
            self._appearing = None

    def _forget(self) -> None:
        """The entry is never used again."""
        presence, self._presence, self._lease, self._early_until = self._presence, None, None, 0.0
        self._appear_at = max(self._appear_at, self._clock.monotonic())
        if presence is not None:
            ending = own_task(_end(presence), name="end an entry")
            self._under_way.add(ending)
            ending.add_done_callback(self._under_way.discard)

    def _lose(self, why: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._events.emit(CoordinatorLost(self._coordinator.name, why))


async def _end(presence: Presence) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            await presence.end()


@asynccontextmanager
async def coordinated(
    workers: Workers, new_coordinator: Callable[[], Coordinator], *, config: Config, clock: Clock, events: EventBus
) -> AsyncIterator[CoordinatedBeats]:
    """Its coordinator belongs to the event loop that enters."""
    coordinator = new_coordinator()
    beats = CoordinatedBeats(workers, coordinator, config=config, clock=clock, events=events)
    try:
        yield beats
    finally:
        await beats.close()
        await coordinator.close()
