"""Keeps the timing wheel filled: reads the jobs of this node's shards that are due soon, and plans their firing before
the instant comes.

Only the near future is read, by an index; what is further away is not touched, however much of it there is. A plan that
has become stale, because the job was edited, paused or fired by another, matches nothing when it is carried out, so the
wheel need not be told.

The wheel runs on the database's clock: `database_now` is that clock as last heard, moved on by the monotonic one.
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
from foliot.store.jobs import Firing
from foliot.store.store import Store

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
        """In milliseconds; late by what an answer's way back takes, never early."""
        return int((self.clock.monotonic() + self._offset) * MILLISECONDS)

    async def run_once(self) -> float:
        epochs = self._shards.epochs
        if not epochs:
            return INTERVAL_SECONDS
        # Asked for on its own: its answer is quick, and so the clock near.
        self._listen_to((await self._store.jobs.database_now()).timestamp() - self.clock.monotonic())
        if self.wheel is None:
            self.wheel = TimingWheel(self.database_now() - 1)
        self._moved.clear()
        fresh, unreadable = await self._store.jobs.due_jobs(
            list(epochs), BATCH_OF_A_SHARD, LOOK_AHEAD_SECONDS, self._loaded
        )
        for job in unreadable:
            self._loaded[job.job_id] = (job.version, job.tick)
            self.events.emit(ScheduleUnreadable(job.job_id, job.why))
        # Those that were fired meanwhile may have been read as they were before.
        self._plan([job for job in fresh if job.id not in self._moved])
        return 0 if len(fresh) + len(unreadable) >= BATCH_OF_A_SHARD else INTERVAL_SECONDS

    def hinted(self, topic: str) -> None:
        """A job was made or changed: it may be due before our next look."""
        if topic == JOBS_TOPIC:
            self.wake()

    def follow(self, firings: list[Firing], going_on: Set[UUID]) -> None:
        """They have been carried out, or refused. A next tick that is near needs no reading; the rest is read when it
        comes."""
        horizon = self.database_now() // MILLISECONDS + LOOK_AHEAD_SECONDS
        soon = []
        for firing in firings:
            job = firing.job
            self._moved.add(job.id)
            if self._loaded.get(job.id) != (job.version, job.tick):
                # Read since it was carried out, and in the wheel again: twice, and two statements would wait for each
                # other's jobs.
                continue
            del self._loaded[job.id]
            tick, fire = firing.next_tick, firing.next_fire
            if tick is not None and fire is not None and fire <= horizon and job.id in going_on:
                soon.append(replace(job, tick=tick, fire=fire, utc_offset=firing.utc_offset))
        self._plan(soon)
        if len(going_on) < len(firings):
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
                # It counts as loaded, so it is not read again until it is edited, and holds up no other.
                self.events.emit(ScheduleUnreadable(job.id, error.detail))
                continue
            self.wheel.add(job.fire * MILLISECONDS, firing)

    def _listen_to(self, offset: float) -> None:
        """Each answer was true when it was sent, so the largest offset heard is the nearest; clocks that drift or step
        are followed."""
        is_step = abs(offset - self._offset) > STEP_SECONDS
        self._offset = offset if is_step else max(offset, self._offset - DRIFT_SECONDS)
