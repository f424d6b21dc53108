"""Turns due ticks into runs: each exactly once, or into a note that says why not.

What is due comes out of the timing wheel, planned beforehand, and is carried out by one fenced statement a batch: it moves the cursors,
makes the runs, notes the rest. A cursor is moved only from where it was read, so two nodes that both believe they own a job can't fire a
tick twice; a run's id is made of job and tick, so not even a repeated statement can. Nothing moves before its instant has come on the
database's clock, which also decides what is late.
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from foliot.clock import Clock
from foliot.events import EventBus, RunsCancelled, TicksFired
from foliot.model.job import resumed
from foliot.scheduler.loader import MILLISECONDS, Loader, Planner
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.service import Service
from foliot.store.hints import worker_topic
from foliot.store.jobs import Firing
from foliot.store.store import Store

# Small enough for the first of a burst not to wait for the last.
BATCH = 250
# Statements under way at the same time: one commits while another computes.
AT_ONCE = 2
LONGEST_WAIT_SECONDS = 0.2
CLOSE_BATCH = 1000


class Firer(Service):
    def __init__(self, *, store: Store, shards: ShardKeeper, loader: Loader, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._shards = shards
        self._loader = loader

    async def run_once(self) -> float:
        wheel = self._loader.wheel
        if wheel is None:
            return LONGEST_WAIT_SECONDS / 4
        now = self._loader.database_now()
        due = [firing for _, firing in wheel.advance(now)]
        if due:
            await self._fire_all(due, now // MILLISECONDS)
            return 0
        following = wheel.next_due()
        wait = LONGEST_WAIT_SECONDS if following is None else (following - self._loader.database_now()) / MILLISECONDS
        return max(0.001, min(wait, LONGEST_WAIT_SECONDS))

    async def _fire_all(self, due: list[Firing], now: int) -> None:
        """In order of their instants; inside a batch by shard, so that those under way at once lock few of the same shards."""
        batches = iter([sorted(due[start : start + BATCH], key=by_shard) for start in range(0, len(due), BATCH)])

        async def fire_some() -> None:
            for batch in batches:
                await self._fire(batch, now)

        results = await asyncio.gather(*(fire_some() for _ in range(AT_ONCE)), return_exceptions=True)
        # What nobody got to, because all of them failed, is read anew.
        for batch in batches:
            self._loader.follow(batch, frozenset())
        for error in results:
            if error is not None:
                raise error

    async def _fire(self, firings: list[Firing], now: int) -> None:
        planner = Planner(now)
        # What was planned to be on time may have become late, as after a sleep: then it is planned again.
        current = [planner.firing_of(f.job) if now - f.job.fire >= f.job.schedule.grace_seconds else f for f in firings]
        going_on: frozenset[UUID] = frozenset()
        try:
            fired = await self._store.jobs.fire_ticks(self._shards.scheduler_id, self._shards.epochs, current)
            going_on = fired.going_on
        finally:
            self._loader.follow(current, going_on)
        self._store.hints.send([*fired.queues, *map(worker_topic, fired.workers)])
        self.events.emit(TicksFired(fired.fired, fired.moved - fired.fired))
        if fired.is_making_room:
            await close_cancelled(self._store)


def by_shard(firing: Firing) -> int:
    return firing.job.shard


async def close_cancelled(store: Store) -> int:
    """Ends what was asked to end and is held by nobody, and tells those that hold what was ended by force."""
    closed = await store.runs.close_cancelled(CLOSE_BATCH)
    store.hints.send(worker_topic(worker_id) for worker_id in closed.values() if worker_id is not None)
    return len(closed)


class Resumer(Service):
    """What waits for something other than its instant: runs that were asked to end, held ones whose turn has come, pauses that are over."""

    def __init__(self, *, store: Store, shards: ShardKeeper, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._shards = shards

    async def run_once(self) -> float:
        jobs, epochs = self._store.jobs, self._shards.epochs
        if closed := await close_cancelled(self._store):
            self.events.emit(RunsCancelled(closed))
        if epochs:
            self._store.hints.send(await jobs.release_held(self._shards.scheduler_id, epochs))
            for job_id in await jobs.jobs_to_resume():
                job, now = await jobs.get_job(job_id, ""), await jobs.database_now()
                # It may have been resumed meanwhile, and paused anew.
                if job is not None and job.paused_until is not None and job.paused_until <= now:
                    await jobs.resume_job(*resumed(job, now))
        return LONGEST_WAIT_SECONDS
