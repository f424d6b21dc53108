"""Looks for runs that wait although nothing is left to wait for. There should be none: what it finds is a fault of ours, and it says so.

A run that waits too long for another counts anew; what else is found is only told. Any number of repairers may run.
"""

from __future__ import annotations

from foliot.clock import Clock
from foliot.events import EventBus, StuckFound
from foliot.service import Service
from foliot.store.store import Store

INTERVAL_SECONDS = 60.0


class Repairer(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store

    async def run_once(self) -> float:
        for kind, run_id in await self._store.workflows.find_stuck():
            self.events.emit(StuckFound(kind, run_id))
            if kind == "dependent":
                await self._store.workflows.count_anew(run_id)
        return INTERVAL_SECONDS
