"""Turns due ticks into runs: each exactly once, or into a note that says why not.

For every due job the plan is made here (`model.schedule.plan`, pure) and carried out in one fenced statement for all of them: it moves the
cursors, makes the runs, notes the rest. A cursor is moved only from where it was read, so two nodes that both believe they own a job can't
fire a tick twice; a run's id is made of job and tick, so not even a repeated statement can. Late is decided on the database's clock.
"""

from __future__ import annotations

import random

from foliot.clock import Clock
from foliot.events import EventBus, TicksFired
from foliot.model.ids import tick_run_id
from foliot.model.job import DueJob, fire_at, resumed
from foliot.model.schedule import plan
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.service import Service
from foliot.store.jobs import Firing
from foliot.store.store import Store
from foliot.triggers.base import to_datetime, to_instant

# Times a hundred shards: large enough to be cheap, small enough for the first of a burst not to wait for the last.
BATCH_OF_A_SHARD = 20
LONGEST_WAIT_SECONDS = 0.2


class Firer(Service):
    def __init__(self, *, store: Store, shards: ShardKeeper, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._shards = shards

    async def run_once(self) -> float:
        epochs = self._shards.epochs
        if not epochs:
            return LONGEST_WAIT_SECONDS
        await self._resume_those_whose_pause_is_over()
        jobs = self._store.jobs
        if queues := await jobs.release_held(self._shards.scheduler_id, epochs):
            self._store.hints.send(queues)
        due = await jobs.due_jobs(list(epochs), BATCH_OF_A_SHARD)
        if due:
            now = to_instant(await jobs.database_now())
            fired = await jobs.fire_ticks(self._shards.scheduler_id, epochs, [firing_of(job, now) for job in due])
            self._store.hints.send(fired.queues)
            self.events.emit(TicksFired(fired.fired, fired.moved - fired.fired))
            return 0
        until_fire = await jobs.seconds_until_fire(list(epochs))
        longest = LONGEST_WAIT_SECONDS * random.uniform(0.8, 1.0)  # noqa: S311
        return longest if until_fire is None else max(0.001, min(until_fire, longest))

    async def _resume_those_whose_pause_is_over(self) -> None:
        for job_id in await self._store.jobs.jobs_to_resume():
            job = await self._store.jobs.get_job(job_id, "")
            if job is not None and job.paused_at is not None:
                await self._store.jobs.resume_job(*resumed(job, await self._store.jobs.database_now()))


def firing_of(job: DueJob, now: int) -> Firing:
    planned = plan(job.schedule, job.trigger, to_instant(job.next_at), now)
    tick, following = planned.fire, planned.next_tick
    return Firing(
        job=job,
        next_at=None if following is None else to_datetime(following),
        fire_at=fire_at(job.schedule, job.id, following),
        tick_at=None if tick is None else to_datetime(tick),
        run_id=None if tick is None else tick_run_id(job.id, tick),
        notes=planned.notes,
    )
