"""Finds runs that wait although nothing is left to wait for. Each one is a bug in Foliot, and is reported.

It counts the dependencies of a stuck dependent again, and wakes a function whose called runs have ended; other findings
are only reported. Any number of repairers may run. Each checks all live runs and all workflows in small steps, so that
one step costs the same for any number of them.
"""

from __future__ import annotations

from foliot.clock import Clock
from foliot.events import EventBus, StuckFound
from foliot.service import Service
from foliot.store.store import Store
from foliot.store.stuck_runs import Look

INTERVAL_SECONDS = 60.0
"""Between two rounds."""
LOOK_SECONDS = 1.0
"""Between two steps of one round. A step takes some milliseconds."""


class Repairer(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._look = Look()

    async def run_once(self) -> float:
        found, following = await self._store.stuck_runs.find_stuck(self._look)
        self._look = following or Look()
        for kind, run_id in found:
            self.events.emit(StuckFound(kind, run_id))
            if kind == "dependent":
                await self.attempt(
                    f"count the dependencies of {run_id}", self._store.stuck_runs.count_again(run_id), None
                )
            elif kind == "suspended":
                await self.attempt(f"wake {run_id}", self._store.checkpoints.wake_run(run_id), None)
        return INTERVAL_SECONDS if following is None else LOOK_SECONDS
