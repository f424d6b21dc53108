"""Queues that are deeper than they may be: a job for one of them is refused for now, with the time after which to try
again."""

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
        """Raises `QueueFull`. What is known is about a second old, so that submitting costs nothing."""
        now = self._clock.monotonic()
        if now - self._read_at > FRESH_SECONDS:
            # One asks anew; the others, of whom there may be many at that moment, go by what was known.
            self._read_at = now
            self._full = await self._store.gates.full_queues()
        if namespace.qualified(queue) in self._full:
            raise QueueFull(f"the queue {queue!r} is as deep as it may be; try again later", retry_after=1)
