"""The future of many schedules: when they fire, how many at once, and how many slots that takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from uuid import UUID

from foliot.model.jitter import tick_jitter
from foliot.model.schedule import Timetable

TICKS_MAX = 20_000
"""The ticks that are computed for one answer."""


@dataclass(frozen=True, slots=True)
class Coming:
    """A job whose ticks are wanted."""

    id: UUID
    timetable: Timetable
    first_tick: int
    jitter_seconds: int
    runs_left: int | None
    seconds: float = 0.0
    """How long a run is expected to take."""


@dataclass(frozen=True, slots=True)
class Fires:
    by_job: dict[UUID, list[int]]
    """Each with its jitter, in order."""
    is_complete: bool
    """False: there are more than `TICKS_MAX`, and the rest was not computed."""
    steady: dict[UUID, Steady] = field(default_factory=dict)
    """The rest of jobs with more ticks than were computed for each."""


@dataclass(frozen=True, slots=True)
class Steady:
    """Ticks that are not computed one by one: they go on as often as before."""

    begin: int
    spacing: float

    def count(self, begin: int, end: int) -> float:
        return max(0, end - max(begin, self.begin)) / self.spacing


def fires_of(jobs: Sequence[Coming], until: int, *, each: int = TICKS_MAX) -> Fires:
    """When each job fires before a time. Jobs with the same timetable share the arithmetic.

    At most `each` ticks of a job are computed. The others are expected at the average distance of those.
    """
    left, shared = TICKS_MAX, dict[tuple[int, int], list[int]]()
    by_job: dict[UUID, list[int]] = {}
    steady: dict[UUID, Steady] = {}
    for job in jobs:
        if left <= 0:
            return Fires(by_job, is_complete=False, steady=steady)
        key = (id(job.timetable), job.first_tick)
        ticks = shared.get(key)
        if ticks is None:
            ticks = shared[key] = _ticks(job, until, min(left, each))
        if len(ticks) > each >= 2 and (job.runs_left is None or job.runs_left > each):
            steady[job.id] = Steady(ticks[each], (ticks[each] - ticks[0]) / each)
            ticks = ticks[:each]
        taken = ticks if job.runs_left is None else ticks[: job.runs_left]
        left -= len(taken)
        by_job[job.id] = sorted(tick + tick_jitter(job.jitter_seconds, job.id, tick) for tick in taken)
    return Fires(by_job, is_complete=left > 0, steady=steady)


def _ticks(job: Coming, until: int, most: int) -> list[int]:
    found: list[int] = []
    # The first one is pending: on an excluded day it is dropped like any other.
    tick = job.timetable.fires.next_after(job.first_tick - 1)
    while tick is not None and tick < until and len(found) <= most:
        found.append(tick)
        tick = job.timetable.fires.next_after(tick)
    return found


@dataclass(slots=True)
class Bucket:
    at: int
    fires: int = 0
    slots: int = 0
    """The most runs at once, if each takes as long as expected and starts when it fires."""


def crowding(
    starts: Iterable[tuple[int, float]],
    begin: int,
    end: int,
    step: int,
    steady: Iterable[tuple[Steady, float]] = (),
) -> list[Bucket]:
    """Counts fires in buckets, each with the most slots in use at once. `starts`: instants with expected seconds.
    `steady`: ticks that go on regularly, with expected seconds."""
    buckets = [Bucket(at) for at in range(begin, end, step)]
    changes: list[tuple[float, int]] = []
    for at, seconds in starts:
        if not begin <= at < end:
            continue
        buckets[(at - begin) // step].fires += 1
        changes += [(at, 1), (at + max(seconds, 0.001), -1)]
    changes.sort()
    running, place = 0, 0
    for bucket in buckets:
        bucket.slots = running
        while place < len(changes) and changes[place][0] < bucket.at + step:
            running += changes[place][1]
            bucket.slots = max(bucket.slots, running)
            place += 1
    for rest, seconds in steady:
        at_once = ceil(max(seconds, 0.001) / rest.spacing)
        for bucket in buckets:
            if count := rest.count(bucket.at, min(bucket.at + step, end)):
                bucket.fires += round(count)
                bucket.slots += at_once
    return buckets
