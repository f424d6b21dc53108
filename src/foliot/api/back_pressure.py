"""Queues that are deeper than they may be: a job for one of them is refused for now, with the time after which to try again."""

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

    async def check(self, namespace: Namespace, queue: str) -> None:
        """Raises `QueueFull`. What is known is up to a second old, so that submitting costs nothing."""
        if self._clock.monotonic() - self._read_at > FRESH_SECONDS:
            self._full, self._read_at = await self._store.gates.full_queues(), self._clock.monotonic()
        if namespace.qualified(queue) in self._full:
            raise QueueFull(f"the queue {queue!r} is as deep as it may be; try again later", retry_after=1)
