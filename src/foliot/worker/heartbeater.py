"""Keeps this worker's lease: one row for all its attempts. The answer says which of them are to end.

The lease is trusted until two seconds before its end, counted from *before* the renewal was sent, on the monotonic clock. A worker
that could not renew by then, or that was struck off, must stop all its attempts before others may start them anew; `on_lease_lost`
does that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus, ServiceFailed
from foliot.service import Service
from foliot.store.store import Store
from foliot.store.workers import Beat
from foliot.worker.attempts import Attempts

MARGIN_SECONDS = 2.0
RETRY_SECONDS = 0.2


class Heartbeater(Service):
    def __init__(
        self,
        *,
        store: Store,
        attempts: Attempts,
        on_beat: Callable[[Beat], None],
        config: Config,
        on_lease_lost: Callable[[], Awaitable[None]],
        clock: Clock,
        events: EventBus,
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._attempts = attempts
        self._on_beat = on_beat
        self._config = config
        self._on_lease_lost = on_lease_lost
        self._worker_id: UUID
        self._trusted_until = 0.0

    def took_lease(self, worker_id: UUID, asked_at: float) -> None:
        self._worker_id = worker_id
        self._trust_from(asked_at)

    async def run_once(self) -> float:
        asked_at = self.clock.monotonic()
        is_renewed: bool | None = None
        try:
            async with asyncio.timeout(max(0.0, self._trusted_until - asked_at)):
                beat = await self._store.workers.beat(self._worker_id, self._attempts.held)
                is_renewed = beat.is_renewed
                self._on_beat(beat)
        except Exception as error:
            # Whatever kept the beat from arriving, the lease runs out all the same.
            self.events.emit(ServiceFailed(self.name, f"{type(error).__name__}: {error}", RETRY_SECONDS))
        if is_renewed:
            self._trust_from(asked_at)
        elif is_renewed is False or self.clock.monotonic() >= self._trusted_until:
            await self._on_lease_lost()
        else:
            return RETRY_SECONDS
        return self._config.worker_beat_seconds

    def _trust_from(self, asked_at: float) -> None:
        margin = min(MARGIN_SECONDS, self._config.worker_ttl_seconds / 5)
        self._trusted_until = asked_at + self._config.worker_ttl_seconds - margin
