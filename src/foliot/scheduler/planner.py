"""Plans the firing of a due job: which tick fires, which ticks are noted, and where the cursor moves."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.model.catchup import Plan, plan
from foliot.model.ids import tick_run_id
from foliot.model.job import DueJob, fire_of
from foliot.model.schedule import Timetable
from foliot.store.ticks import Firing


class Planner:
    """Plans firings as of one instant. Jobs with the same schedule and tick share one plan."""

    def __init__(self, now: int) -> None:
        self._now = now
        self._plans: dict[tuple[int, int, int | None], Planned] = {}

    def firing_of(self, job: DueJob) -> Firing:
        timetable, tick = job.timetable, job.tick
        # Equal schedules share one timetable. The plan keeps it alive, so that its id is not reused.
        key = (id(timetable), tick, job.utc_offset)
        planned = self._plans.get(key)
        if planned is None:
            planned = self._plans[key] = self._plan(job, timetable, tick)
        found = planned.plan
        return Firing(
            job=job,
            next_tick=found.next_tick,
            next_fire=None if found.next_tick is None else fire_of(job.schedule, job.id, found.next_tick),
            utc_offset=planned.utc_offset,
            tick=found.fire,
            run_id=None if found.fire is None else tick_run_id(job.id, found.fire),
            notes=found.notes,
            previous=planned.previous,
            following=planned.following,
        )

    def _plan(self, job: DueJob, timetable: Timetable, tick: int) -> Planned:
        corrected = timetable.corrected(tick, job.utc_offset, self._now)
        # The rules of the zone have changed since the tick was computed: the cursor moves, and nothing fires now.
        found = (
            plan(job.schedule, timetable, tick, max(self._now, tick))
            if corrected == tick
            else Plan(None, (), corrected)
        )
        previous = following = None
        if found.fire is not None:
            # A tick on a day that the calendar excludes is the next tick, but becomes no run.
            known = found.next_tick if timetable.excluded is None else None
            previous, following = timetable.beside(found.fire, known)
        return Planned(timetable, found, timetable.offset_of(found.next_tick), previous, following)


@dataclass(frozen=True, slots=True)
class Planned:
    timetable: Timetable
    plan: Plan
    utc_offset: int | None
    previous: int | None
    following: int | None
