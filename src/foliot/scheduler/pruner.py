"""Creates the partitions of history a week ahead, and deletes old data: days past their retention, dead nodes, old rate
starts, expired idempotency keys, ended sessions, finished parents, ended replays, versions of deleted jobs, and workers
that have been gone for a day."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from uuid import UUID

from foliot.archive_events import DaysAwaitArchive
from foliot.clock import Clock
from foliot.events import EventBus, PartitionsKept
from foliot.service import Service
from foliot.store.checkpoints import FIRST
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
            self._forget_sessions,
            self._forget_parents,
            self._forget_checkpoints,
            self._forget_replays,
            self._forget_versions,
            self._forget_gone_workers,
        )

    async def _create_days(self) -> float:
        if created := await self._store.partitions.create_missing():
            self.events.emit(PartitionsKept(created, 0))
        return INTERVAL_SECONDS

    async def _drop_days(self) -> float:
        if dropped := await self._store.partitions.drop_expired():
            self.events.emit(PartitionsKept(0, dropped))
        if waiting := await self._store.partitions.list_unarchived():
            self.events.emit(DaysAwaitArchive(len(waiting), waiting[0]))
        return INTERVAL_SECONDS

    async def _remove_nodes(self) -> float:
        await self._store.shards.remove_dead_schedulers()
        return INTERVAL_SECONDS

    async def _forget_rate_starts(self) -> float:
        return await self._until_done(self._store.limits.forget_rate_starts)

    async def _forget_answers(self) -> float:
        return await self._until_done(self._store.idempotency.forget_answers)

    async def _forget_sessions(self) -> float:
        return await self._until_done(self._store.sessions.forget_sessions)

    async def _forget_parents(self) -> float:
        oldest_kept = await self._store.partitions.oldest_kept()
        return await self._until_done(partial(self._store.workflows.forget_parents, oldest_kept))

    async def _forget_checkpoints(self) -> float:
        oldest_kept = await self._store.partitions.oldest_kept()
        after: tuple[datetime, UUID] | None = FIRST
        while after is not None and not self.stopping:
            after = await self._store.checkpoints.forget_checkpoints(oldest_kept, after)
        return INTERVAL_SECONDS

    async def _forget_replays(self) -> float:
        oldest_kept = await self._store.partitions.oldest_kept()
        return await self._until_done(partial(self._store.replays.forget_replays, oldest_kept))

    async def _forget_versions(self) -> float:
        oldest_kept = await self._store.partitions.oldest_kept()
        return await self._until_done(partial(self._store.job_versions.forget_versions, oldest_kept))

    async def _forget_gone_workers(self) -> float:
        return await self._until_done(self._store.gone_workers.forget_gone_workers)

    async def _until_done(self, forget_some: Callable[[], Awaitable[int]]) -> float:
        """Deletes in batches, each in its own transaction, so that a failed batch does not undo the ones before."""
        while not self.stopping and await forget_some():
            pass
        return INTERVAL_SECONDS
