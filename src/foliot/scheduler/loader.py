"""Keeps the timing wheel filled: reads the jobs of this node's shards that are due soon, and plans their firing before the instant comes.

Only the near future is read, by an index; what is further away is not touched, however much of it there is. A plan that has become stale,
because the job was edited, paused or fired by another, matches nothing when it is carried out, so the wheel need not be told.

The wheel runs on the database's clock: `database_now` is that clock as last heard, moved on by the monotonic one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from foliot.clock import Clock
from foliot.events import EventBus
from foliot.model.ids import tick_run_id
from foliot.model.job import DueJob, fire_at
from foliot.model.schedule import Plan, Timetable, plan
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.scheduler.timing_wheel import TimingWheel
from foliot.service import Service
from foliot.store.jobs import Firing
from foliot.store.store import Store
from foliot.triggers.base import to_datetime, to_instant

LOOK_AHEAD_SECONDS = 2.0
INTERVAL_SECONDS = 0.25
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
        self.wheel: TimingWheel[Firing] | None = None

    def database_now(self) -> int:
        """In milliseconds; late by what an answer's way back takes, never early."""
        return int((self.clock.monotonic() + self._offset) * MILLISECONDS)

    async def run_once(self) -> float:
        epochs = self._shards.epochs
        if not epochs:
            return INTERVAL_SECONDS
        now, due = await self._store.jobs.due_jobs(list(epochs), BATCH_OF_A_SHARD, LOOK_AHEAD_SECONDS)
        self._listen_to(now.timestamp() - self.clock.monotonic())
        if self.wheel is None:
            self.wheel = TimingWheel(self.database_now() - 1)
        fresh = [job for job in due if self._loaded.get(job.id) != (job.version, to_instant(job.next_at))]
        plans = Planner(to_instant(now))
        for job in fresh:
            self._loaded[job.id] = (job.version, to_instant(job.next_at))
            self.wheel.add(int(job.fire_at.timestamp() * MILLISECONDS), plans.firing_of(job))
        return 0 if len(fresh) >= BATCH_OF_A_SHARD else INTERVAL_SECONDS

    def _listen_to(self, offset: float) -> None:
        """Each answer was true when it was sent, so the largest offset heard is the nearest; clocks that drift or step are followed."""
        is_step = abs(offset - self._offset) > STEP_SECONDS
        self._offset = offset if is_step else max(offset, self._offset - DRIFT_SECONDS)

    def forget(self, firings: list[Firing]) -> None:
        """They have been carried out, or refused: what is due next is read anew."""
        for firing in firings:
            self._loaded.pop(firing.job.id, None)


class Planner:
    """Plans firings as of one instant. Jobs that share a schedule and a tick share the work."""

    def __init__(self, now: int) -> None:
        self._now = now
        self._plans: dict[tuple[int, int, int | None], Planned] = {}

    def firing_of(self, job: DueJob) -> Firing:
        timetable, tick = job.timetable, to_instant(job.next_at)
        # Equal schedules have one timetable. It is kept with the plan, so that its address stays its own.
        key = (id(timetable), tick, job.utc_offset)
        planned = self._plans.get(key)
        if planned is None:
            planned = self._plans[key] = self._plan(job, timetable, tick)
        fire = planned.plan.fire
        return Firing(
            job=job,
            next_at=planned.next_at,
            fire_at=planned.next_at if not job.schedule.jitter_seconds else fire_at(job.schedule, job.id, planned.plan.next_tick),
            utc_offset=planned.utc_offset,
            tick_at=None if fire is None else job.next_at,
            run_id=None if fire is None else tick_run_id(job.id, fire),
            notes=planned.plan.notes,
        )

    def _plan(self, job: DueJob, timetable: Timetable, tick: int) -> Planned:
        corrected = timetable.corrected(tick, job.utc_offset, self._now)
        # A tick that was found under other rules of its zone: the cursor goes where it belongs, and the tick is dealt with there.
        found = plan(job.schedule, timetable, tick, max(self._now, tick)) if corrected == tick else Plan(None, (), corrected)
        following = found.next_tick
        return Planned(timetable, found, None if following is None else to_datetime(following), timetable.offset_of(following))


@dataclass(frozen=True, slots=True)
class Planned:
    timetable: Timetable
    plan: Plan
    next_at: datetime | None
    utc_offset: int | None
