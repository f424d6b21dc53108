"""Fills the timing wheel: reads the jobs of this node's shards that are due soon, and plans their firing in advance.

It reads only the near future, through an index, so its cost does not depend on the number of jobs. A plan becomes stale
when its job is edited, paused or fired by another node; the statement that fires then matches nothing, so the wheel
need not know.

The wheel runs on the database's clock: `database_now` is the last known offset applied to the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from uuid import UUID

from foliot.clock import Clock
from foliot.errors import Invalid
from foliot.events import EventBus, ScheduleUnreadable
from foliot.model.job import DueJob
from foliot.scheduler.planner import Planner
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.scheduler.timing_wheel import TimingWheel
from foliot.service import Service
from foliot.store.hints import JOBS_TOPIC
from foliot.store.store import Store
from foliot.store.ticks import Firing

LOOK_AHEAD_SECONDS = 2.0
INTERVAL_SECONDS = 0.5
BATCH_OF_A_SHARD = 300
MILLISECONDS = 1000
STEP_SECONDS = 1.0
DRIFT_SECONDS = 0.0005


class Loader(Service):
    def __init__(self, *, store: Store, shards: ShardKeeper, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._shards = shards
        self._offset = 0.0
        self._loaded: dict[UUID, tuple[int, int]] = {}
        self._moved: set[UUID] = set()
        self.wheel: TimingWheel[Firing] | None = None

    def database_now(self) -> int:
        """In milliseconds. Late by the time that the database's answer took to arrive, never early."""
        return int((self.clock.monotonic() + self._offset) * MILLISECONDS)

    async def run_once(self) -> float:
        epochs = self._shards.epochs
        if not epochs:
            return INTERVAL_SECONDS
        # A separate query, because a quick answer gives a precise clock.
        self._adopt_offset((await self._store.jobs.database_now()).timestamp() - self.clock.monotonic())
        if self.wheel is None:
            self.wheel = TimingWheel(self.database_now() - 1)
        self._moved.clear()
        fresh, unreadable = await self._store.ticks.due_jobs(
            list(epochs), BATCH_OF_A_SHARD, LOOK_AHEAD_SECONDS, self._loaded
        )
        for job in unreadable:
            self._loaded[job.job_id] = (job.version, job.tick)
            self.events.emit(ScheduleUnreadable(job.job_id, job.why))
        # Jobs that were fired in the meantime may have been read in their old state.
        self._plan([job for job in fresh if job.id not in self._moved])
        return 0 if len(fresh) + len(unreadable) >= BATCH_OF_A_SHARD else INTERVAL_SECONDS

    def hinted(self, topic: str) -> None:
        """Wakes when a job was created or changed: it may be due before the next poll."""
        if topic == JOBS_TOPIC:
            self.wake()

    def follow(self, firings: list[Firing], moved: Set[UUID]) -> None:
        """Plans the next ticks of fired jobs (`moved`) that are near. All other jobs are read when they become due."""
        horizon = self.database_now() // MILLISECONDS + LOOK_AHEAD_SECONDS
        soon = []
        for firing in firings:
            job = firing.job
            self._moved.add(job.id)
            if self._loaded.get(job.id) != (job.version, job.tick):
                # It was read after it was fired, so it is in the wheel again. If it were there twice, two statements
                # would wait for each other's jobs.
                continue
            del self._loaded[job.id]
            tick, fire = firing.next_tick, firing.next_fire
            if tick is not None and fire is not None and fire <= horizon and job.id in moved:
                soon.append(replace(job, tick=tick, fire=fire, utc_offset=firing.utc_offset))
        self._plan(soon)
        if len(moved) < len(firings):
            self.wake()

    def _plan(self, jobs: list[DueJob]) -> None:
        assert self.wheel is not None  # noqa: S101
        now = self.database_now()
        planner = Planner(now // MILLISECONDS)
        for job in jobs:
            self._loaded[job.id] = (job.version, job.tick)
            try:
                firing = planner.firing_of(job)
            except Invalid as error:
                # It counts as loaded: it is not read again until it is edited, and does not hold up other jobs.
                self.events.emit(ScheduleUnreadable(job.id, error.detail))
                continue
            self.wheel.add(job.fire * MILLISECONDS, firing)

    def _adopt_offset(self, offset: float) -> None:
        """Adopts an offset. Each answer was exact when it was sent, so the largest offset is the most precise; drift
        and steps of the clock are followed."""
        is_step = abs(offset - self._offset) > STEP_SECONDS
        self._offset = offset if is_step else max(offset, self._offset - DRIFT_SECONDS)
