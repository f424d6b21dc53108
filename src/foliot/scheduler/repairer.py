"""Looks for runs that wait although nothing is left to wait for. There should be none: what it finds is a fault of
ours, and it says so.

A run that waits too long for another counts anew; what else is found is only told. Any number of repairers may run.
Each goes round all live runs and all workflows, some at a time, so that a look costs the same however many there are.
"""

from __future__ import annotations

from foliot.clock import Clock
from foliot.events import EventBus, StuckFound
from foliot.service import Service
from foliot.store.store import Store
from foliot.store.workflows import Look

INTERVAL_SECONDS = 60.0
"""Between two rounds."""
LOOK_SECONDS = 1.0
"""Between two looks of one round, each of which takes some milliseconds."""


class Repairer(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store

        self._look = Look()

    async def run_once(self) -> float:
        found, following = await self._store.workflows.find_stuck(self._look)
        self._look = following or Look()
        for kind, run_id in found:
            self.events.emit(StuckFound(kind, run_id))
            if kind == "dependent":
                await self.attempt(f"count anew {run_id}", self._store.workflows.count_anew(run_id), None)
        return INTERVAL_SECONDS if following is None else LOOK_SECONDS
