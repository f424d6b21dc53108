"""Keeps a week of empty days ahead of history, and drops what is over: days past their retention, nodes long gone, answered keys."""

from __future__ import annotations

from foliot.clock import Clock
from foliot.events import EventBus, PartitionsKept
from foliot.service import Service
from foliot.store.store import Store

INTERVAL_SECONDS = 3600.0


class Pruner(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store

    async def run_once(self) -> float:
        created = await self._store.partitions.create_missing()
        dropped = await self._store.partitions.drop_expired()
        await self._store.shards.remove_dead_schedulers()
        await self._store.gates.forget_rate_starts()
        while await self._store.submissions.forget_answers():
            pass
        while await self._store.workflows.forget_parents(await self._store.partitions.oldest_kept()):
            pass
        if created or dropped:
            self.events.emit(PartitionsKept(created, dropped))
        return INTERVAL_SECONDS
