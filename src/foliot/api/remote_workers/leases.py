"""Renews the leases of workers: the heartbeats of all of them in one statement.

An idle worker gets a lease of several times the usual length, and its heartbeats are answered from memory while that
lease is long enough. So a thousand idle workers cost the database a few rows a second. A worker that holds runs has a
lease of the usual length, so that its runs are found soon if it dies: its claim and its heartbeats write one.

Another server may have shortened a lease since, for a claim. Then the worker holds runs, and its heartbeats are not
answered from memory.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

from foliot.clock import Clock
from foliot.service import own_task
from foliot.store.store import Store
from foliot.store.workers import Beat, RemoteBeat

IDLE_LEASES = 6
"""The lease of an idle worker, in leases."""
LINGER_SECONDS, IDLE_LINGER_SECONDS = 0.01, 0.5
"""How long a heartbeat waits for others."""
FRESH_SECONDS = 2.0
"""A claim does not renew a lease that was renewed this short a time ago."""
BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Written:
    """The last renewal of a worker's lease by this server, on the monotonic clock."""

    at: float
    lease_seconds: float

    @property
    def until(self) -> float:
        return self.at + self.lease_seconds


class Leases:
    def __init__(self, *, store: Store, clock: Clock, ttl_seconds: float) -> None:
        self._store = store
        self._clock = clock
        self.ttl_seconds = ttl_seconds
        self._written: dict[UUID, Written] = {}
        self._waiting: list[tuple[RemoteBeat, asyncio.Future[Beat | None]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        """When the timer fires, on the clock of the event loop."""
        self._writing: asyncio.Task[None] | None = None
        self._to_ask: set[UUID] = set()

    def ask_soon(self, worker_id: UUID) -> None:
        """The next heartbeat of this worker must not be answered from memory."""
        if worker_id in self._written:
            self._to_ask.add(worker_id)

    async def beat(self, beat: RemoteBeat, *, is_idle: bool) -> Beat | None:
        """None: the worker is not registered any more."""
        if not is_idle or beat.held:
            return await self._renew(beat, LINGER_SECONDS)
        known = self._written.get(beat.worker_id)
        is_long = known is not None and known.until - self._clock.monotonic() > 2 * self.ttl_seconds
        if is_long and beat.worker_id not in self._to_ask:
            return Beat(True, {})
        long = RemoteBeat(beat.worker_id, IDLE_LEASES * self.ttl_seconds, (), beat.left_running)
        return await self._renew(long, IDLE_LINGER_SECONDS)

    async def begin(self, worker_id: UUID) -> float | None:
        """Gives an idle worker that claims a lease of the usual length. Returns how long it lasts from now; None if the
        worker is not registered any more."""
        known, now = self._written.get(worker_id), self._clock.monotonic()
        if known is not None and known.lease_seconds <= self.ttl_seconds and now - known.at < FRESH_SECONDS:
            return known.until - now
        beat = await self._renew(RemoteBeat(worker_id, self.ttl_seconds), 0)
        return None if beat is None else self.ttl_seconds

    def registered(self, worker_id: UUID, asked_at: float) -> None:
        self._written[worker_id] = Written(asked_at, self.ttl_seconds)

    async def _renew(self, beat: RemoteBeat, linger_seconds: float) -> Beat | None:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Beat | None] = loop.create_future()
        self._waiting.append((beat, answer))
        if self._writing is None:
            due = loop.time() + linger_seconds
            if self._timer is None or self._due > due:
                if self._timer is not None:
                    self._timer.cancel()
                self._due, self._timer = due, loop.call_at(due, self._begin_to_write)
        return await answer

    def _begin_to_write(self) -> None:
        self._timer = None
        self._writing = own_task(self._write_all(), name="renew leases")

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                await self._write(self._next_batch())
        finally:
            self._writing = None

    def _next_batch(self) -> dict[UUID, tuple[RemoteBeat, asyncio.Future[Beat | None]]]:
        """Each worker once: two renewals of one worker may list different runs."""
        batch: dict[UUID, tuple[RemoteBeat, asyncio.Future[Beat | None]]] = {}
        left = []
        for beat, answer in self._waiting:
            if answer.done():
                continue
            if beat.worker_id in batch or len(batch) >= BATCH:
                left.append((beat, answer))
            else:
                batch[beat.worker_id] = (beat, answer)
        self._waiting = left
        return batch

    async def _write(self, batch: dict[UUID, tuple[RemoteBeat, asyncio.Future[Beat | None]]]) -> None:
        if not batch:
            return
        asked_at = self._clock.monotonic()
        # Before the statement: a hint that comes while it runs may be about a later change.
        self._to_ask.difference_update(batch)
        try:
            found = await self._store.workers.beat_workers([beat for beat, _ in batch.values()])
        except BaseException as error:
            for _, answer in batch.values():
                if not answer.done():
                    answer.set_exception(error)
                    # A client that has left does not fetch it.
                    answer.exception()
            if not isinstance(error, Exception):
                raise
            return
        for worker_id, (beat, answer) in batch.items():
            if worker_id in found:
                self._written[worker_id] = Written(asked_at, beat.lease_seconds)
            else:
                self._written.pop(worker_id, None)
            if not answer.done():
                answer.set_result(found.get(worker_id))
        for worker_id in [one for one, written in self._written.items() if written.until < asked_at]:
            del self._written[worker_id]
