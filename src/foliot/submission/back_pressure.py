"""Refuses jobs for a queue that has reached its `max_depth`."""

from __future__ import annotations

from foliot.clock import Clock
from foliot.errors import QueueFull
from foliot.model.namespace import Namespace
from foliot.store.store import Store

FRESH_SECONDS = 1.0


class BackPressure:
    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._full: frozenset[str] = frozenset()
        self._read_at = float("-inf")

    def knows_none_full(self) -> bool:
        """No queue is full, so that there is nothing to check."""
        return not self._full and self._clock.monotonic() - self._read_at <= FRESH_SECONDS

    async def check(self, namespace: Namespace, queue: str) -> None:
        """Raises `QueueFull`. The list of full queues is up to a second old, so that a submission costs no query."""
        now = self._clock.monotonic()
        if now - self._read_at > FRESH_SECONDS:
            # Only one caller reads; the others use the previous list meanwhile.
            self._read_at = now
            self._full = await self._store.queues.full_queues()
        if namespace.qualified(queue) in self._full:
            raise QueueFull(f"the queue {queue!r} is full; try again later", retry_after=1)
