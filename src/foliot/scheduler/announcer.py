"""Tells workers of ready runs that nobody has told them of: stored by SQL in a transaction of somebody's own, or by a
process that died before its hint.

Workers that hear hints seldom look by themselves, or many idle ones would keep PostgreSQL busy with looking. Here is
looked for all of them. What a worker was told of and has not taken yet is told again, which costs nothing where nobody
has a free slot. Any number of announcers may run.
"""

from __future__ import annotations

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.service import Service
from foliot.store.store import Store

QUEUES_MAX = 1000
"""In one look. More than that many with ready runs at a time are busy anyway."""


class Announcer(Service):
    def __init__(self, *, store: Store, config: Config, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._config = config

    async def run_once(self) -> float:
        self._store.hints.send(await self._store.runs.ready_queues(QUEUES_MAX))
        return self._config.poll_seconds
