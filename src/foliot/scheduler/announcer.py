"""Sends hints for ready runs that were stored without one: by SQL in a user's own transaction, or by a process that
died before it sent its hint.

Workers that receive hints rarely poll, so that idle workers do not keep PostgreSQL busy. The announcer polls for
all of them. It repeats the hint for runs that no worker has claimed yet, which costs nothing while no slot is free. Any
number of announcers may run.
"""

from __future__ import annotations

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.service import Service
from foliot.store.store import Store

QUEUES_MAX = 1000
"""The most queues in one poll. If more have ready runs, the workers are busy anyway."""


class Announcer(Service):
    def __init__(self, *, store: Store, config: Config, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._config = config

    async def run_once(self) -> float:
        self._store.hints.send(await self._store.due_runs.ready_queues(QUEUES_MAX))
        return self._config.poll_seconds
