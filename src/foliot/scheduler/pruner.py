"""Creates the partitions of history a week ahead, and deletes old data: days past their retention, dead nodes, old rate
starts, expired idempotency keys and finished parents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

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
        return await self.each(
            self._create_days,
            self._drop_days,
            self._remove_nodes,
            self._forget_rate_starts,
            self._forget_answers,
            self._forget_parents,
        )

    async def _create_days(self) -> float:
        if created := await self._store.partitions.create_missing():
            self.events.emit(PartitionsKept(created, 0))
        return INTERVAL_SECONDS

    async def _drop_days(self) -> float:
        if dropped := await self._store.partitions.drop_expired():
            self.events.emit(PartitionsKept(0, dropped))
        return INTERVAL_SECONDS

    async def _remove_nodes(self) -> float:
        await self._store.shards.remove_dead_schedulers()
        return INTERVAL_SECONDS

    async def _forget_rate_starts(self) -> float:
        return await self._until_done(self._store.gates.forget_rate_starts)

    async def _forget_answers(self) -> float:
        return await self._until_done(self._store.submissions.forget_answers)

    async def _forget_parents(self) -> float:
        oldest_kept = await self._store.partitions.oldest_kept()
        return await self._until_done(partial(self._store.workflows.forget_parents, oldest_kept))

    async def _until_done(self, forget_some: Callable[[], Awaitable[int]]) -> float:
        """Deletes in batches, each in its own transaction, so that a failed batch does not undo the ones before."""
        while not self.stopping and await forget_some():
            pass
        return INTERVAL_SECONDS
