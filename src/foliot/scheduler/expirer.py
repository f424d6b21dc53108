"""Ends runs that were not started by their `expires_at`, and waits for a signal that have timed out.

Workers skip expired runs by themselves; the expirer moves them to history. Any number of expirers may run.
"""

from __future__ import annotations

from foliot.clock import Clock
from foliot.events import EventBus, RunsExpired
from foliot.service import Service
from foliot.store.store import Store

BATCH = 1000
INTERVAL_SECONDS = 1.0


class Expirer(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store

    async def run_once(self) -> float:
        return await self.each(self._expire_runs, self._time_out_signals)

    async def _expire_runs(self) -> float:
        expired = await self._store.expiry.expire_runs(BATCH)
        if expired:
            self.events.emit(RunsExpired(expired))
        return 0 if expired == BATCH else INTERVAL_SECONDS

    async def _time_out_signals(self) -> float:
        late = await self._store.signals.time_out_signals(BATCH)
        self._store.hints.send(late)
        return 0 if len(late) == BATCH else INTERVAL_SECONDS
