"""Recomputes cursors when a calendar was edited, or when the rules of time zones were updated.

It moves a cursor only from the position that it has read, so no tick fires twice or is lost. It leaves due ticks alone:
they were due under the old rules.

A calendar that *skips* ticks needs no replanning: its days are checked when a tick is due. A calendar that *moves*
ticks decides where the next tick is, so each job stores the version of the calendar that its cursor is based on. For
zones, each shard stores a fingerprint of the rules. A node with other rules checks its shards once, and corrects each
tick whose wall time has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from uuid import UUID

from foliot.clock import Clock
from foliot.errors import Invalid
from foliot.events import CursorsReplanned, EventBus
from foliot.model.job import scheduled_from, with_cursor
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.service import Service
from foliot.store.replanning import WallClockJob
from foliot.store.shards import Epochs
from foliot.store.store import Store
from foliot.triggers.base import to_instant
from foliot.triggers.zones import offset_at, rules_fingerprint, zone_named

INTERVAL_SECONDS = 1.0
FAILED_SECONDS = 60.0
BATCH = 1000
LOOKED_THROUGH = 10_000
BEGINNING = UUID(int=0)


class Replanner(Service):
    def __init__(self, *, store: Store, shards: ShardKeeper, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._shards = shards
        self._zones = ""
        self._look_at = 0.0

    async def on_start(self) -> None:
        # It reads several hundred small files.
        self._zones = await asyncio.to_thread(rules_fingerprint)

    async def run_once(self) -> float:
        return await self.each(self._follow_calendars, self._follow_zones) if self._shards.epochs else INTERVAL_SECONDS

    async def _follow_calendars(self) -> float:
        stale = await self._store.replanning.stale_jobs(BATCH)
        moved = 0
        for job_id in stale:
            moved += await self.attempt(
                f"follow the calendar of {job_id}", if_readable(self._follow_calendar(job_id)), 0
            )
        self._report(moved)
        # A job that can't be replanned is found again; it must not keep this loop busy.
        return 0 if len(stale) == BATCH and moved else INTERVAL_SECONDS

    def _report(self, moved: int) -> None:
        if moved:
            self.events.emit(CursorsReplanned(moved))

    async def _follow_calendar(self, job_id: UUID) -> int:
        job, now = await self._store.jobs.get_job(job_id, ""), await self._store.jobs.database_now()
        if job is None:
            return 0
        is_due = job.next_at is not None and job.next_at <= now
        return int(await self._store.replanning.replan_job(job, job if is_due else scheduled_from(job, now)))

    async def _follow_zones(self) -> float:
        if self.clock.monotonic() < self._look_at:
            return INTERVAL_SECONDS
        if epochs := await self._store.shards.shards_with_other_zones(self._shards.scheduler_id, self._zones):
            await self._look_through(epochs)
        return INTERVAL_SECONDS

    async def _look_through(self, epochs: Epochs) -> None:
        moved = failed = 0
        after: UUID | None = BEGINNING
        while after is not None and not self.stopping:
            found, after = await self._store.replanning.wall_clock_jobs(list(epochs), after, LOOKED_THROUGH)
            for job in found:
                outcome = await self.attempt(
                    f"correct the next tick of {job.id}", if_readable(self._correct(job)), None
                )
                moved += outcome or 0
                failed += outcome is None
        self._report(moved)
        if failed:
            # The shards are not done, but their other jobs are, so the next check can wait.
            self._look_at = self.clock.monotonic() + FAILED_SECONDS
        if after is not None or failed:
            return
        for shard, epoch in epochs.items():
            # One at a time, because firing locks several shards too.
            await self._store.shards.mark_zones(shard, self._shards.scheduler_id, epoch, self._zones)

    async def _correct(self, found: WallClockJob) -> int:
        if offset_now(found) == found.utc_offset:
            return 0
        job, now = await self._store.jobs.get_job(found.id, ""), await self._store.jobs.database_now()
        if job is None or job.next_at is None:
            return 0
        tick = to_instant(job.next_at)
        corrected = job.timetable.corrected(tick, job.utc_offset, to_instant(now))
        return (
            0 if corrected == tick else int(await self._store.replanning.replan_job(job, with_cursor(job, corrected)))
        )


async def if_readable(work: Awaitable[int]) -> int:
    """Ignores a schedule that this node can't read, or whose zone it does not know. The loader reports it."""
    with suppress(Invalid):
        return await work
    return 0


def offset_now(job: WallClockJob) -> int:
    return offset_at(zone_named(job.timezone), to_instant(job.next_at))
