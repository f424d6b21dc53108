"""Makes scheduled runs ready when they are due: delayed jobs and retries.

Any number of promoters may run: each skips rows that another has locked. The statement decides by the database's clock
which runs are due.
"""

from __future__ import annotations

import random

from foliot.clock import Clock
from foliot.events import EventBus, RunsPromoted
from foliot.service import Service
from foliot.store.store import Store

BATCH = 1000
# A run that is stored after this poll may be due before the next known one.
LONGEST_WAIT_SECONDS = 0.2


class Promoter(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store

    async def run_once(self) -> float:
        queues = await self._store.due_runs.promote_due_runs(BATCH)
        if queues:
            self._store.hints.send(queues)
            self.events.emit(RunsPromoted(len(queues)))
        if len(queues) == BATCH:
            return 0
        until_due = await self._store.due_runs.seconds_until_due()
        longest = LONGEST_WAIT_SECONDS * random.uniform(0.8, 1.0)  # noqa: S311
        return longest if until_due is None else max(0.001, min(until_due, longest))
