"""Resumes work that waits for an event rather than for an instant: paused jobs, and runs held by an earlier run.

It also closes the runs that were cancelled, links runs to the runs that they depend on, and wakes durable functions
when the runs that they called have ended. Replays of dead letters go on here once their first run has succeeded. Any
number of resumers may run.
"""

from __future__ import annotations

from uuid import UUID

from foliot.clock import Clock
from foliot.errors import Invalid
from foliot.events import EventBus, RunsCancelled, ScheduleUnreadable
from foliot.model.job import resumed
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.service import Service
from foliot.store.hints import ALL_QUEUES_TOPIC
from foliot.store.pending_work import WaitsInUse
from foliot.store.store import Store

INTERVAL_SECONDS = 0.2
LINK_BATCH = 1000


class Resumer(Service):
    def __init__(self, *, store: Store, shards: ShardKeeper, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._shards = shards
        self._unreadable: set[UUID] = set()
        self._in_use = WaitsInUse()

    async def run_once(self) -> float:
        self._in_use = await self._store.pending_work.waits_in_use()
        return await self.each(
            self._end_cancelled,
            self._link_runs,
            self._release_held,
            self._resume_jobs,
            self._follow_nudges,
            self._follow_replays,
        )

    async def _end_cancelled(self) -> float:
        if self._in_use.cancels and (closed := await self._store.cancellation.end_cancelled()):
            self.events.emit(RunsCancelled(closed))
        return INTERVAL_SECONDS

    async def _link_runs(self) -> float:
        if self._in_use.links and await self._store.job_dependencies.link_runs(LINK_BATCH):
            self._store.hints.send([ALL_QUEUES_TOPIC])
        return INTERVAL_SECONDS

    async def _release_held(self) -> float:
        if self._in_use.overlaps and (epochs := self._shards.epochs):
            self._store.hints.send(await self._store.overlap.release_held(self._shards.scheduler_id, epochs))
        return INTERVAL_SECONDS

    async def _follow_nudges(self) -> float:
        return 0 if self._in_use.nudges and await self._store.checkpoints.follow_nudges() else INTERVAL_SECONDS

    async def _follow_replays(self) -> float:
        if not self._in_use.replays or (queues := await self._store.replays.follow_replays()) is None:
            return INTERVAL_SECONDS
        self._store.hints.send(queues)
        return 0

    async def _resume_jobs(self) -> float:
        if not self._in_use.pauses or not self._shards.epochs:
            return INTERVAL_SECONDS
        for job_id in await self._store.jobs.jobs_to_resume():
            await self.attempt(f"resume {job_id}", self._resume(job_id), None)
        return INTERVAL_SECONDS

    async def _resume(self, job_id: UUID) -> None:
        jobs = self._store.jobs
        job, now = await jobs.get_job(job_id, ""), await jobs.database_now()
        # Somebody may have resumed it in the meantime, and paused it again.
        if job is None or job.paused_until is None or job.paused_until > now:
            return
        try:
            resumption = resumed(job, now)
        except Invalid as error:
            # A job whose schedule this node can't read stays paused and does not hold up the others.
            if job_id not in self._unreadable:
                self._unreadable.add(job_id)
                self.events.emit(ScheduleUnreadable(job_id, error.detail))
            return
        await jobs.resume_job(*resumption)
