"""Autoscaling: how many slots the runs of a queue need, and when a pool of workers grows or shrinks.

`slots_wanted` looks at one moment. A queue whose runs wait longer than `LAG_SECONDS` wants twice its slots. Otherwise
it wants the number of slots of which its running runs take the share `TARGET`. A queue wants more slots than it has
only if `FULL` of them are taken and runs wait, and never more than one for each run.

`decide` adds time. A pool grows to the smallest size that was wanted throughout `GROW_SECONDS`, and shrinks to the
largest one that was wanted throughout `shrink_seconds`. Both times start again with every change, so that new workers
show their effect first, and a load that comes and goes does not make the pool flap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil

LAG_SECONDS = 10.0
TARGET = 0.7
FULL = 0.9
GROW_SECONDS = 10.0
SHRINK_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class QueueLoad:
    waiting: int
    """Runs that are ready to start."""
    running: int
    slots: int
    """Slots of the workers that take runs of this queue. Draining workers take none."""
    lag_seconds: float = 0.0
    """How long the oldest waiting run has been due."""
    max_running: int | None = None
    is_paused: bool = False
    elsewhere: int = 0
    """The slots among them that workers outside the pool have."""


@dataclass(frozen=True, slots=True)
class Bounds:
    least: int
    most: int
    shrink_seconds: float = SHRINK_SECONDS

    def nearest(self, workers: int) -> int:
        return min(max(workers, self.least), self.most)


@dataclass(frozen=True, slots=True)
class Wish:
    at: float
    workers: int


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of a pool, and the sizes that its load has needed since the last change."""

    workers: int
    since: float
    wishes: tuple[Wish, ...] = ()


def slots_wanted(load: QueueLoad) -> int:
    """The slots that the queue needs now. More slots than `max_running` would stay empty, and so would slots for a
    paused queue."""
    waiting = 0 if load.is_paused else load.waiting
    if load.slots == 0:
        wanted = min(1, waiting)
    else:
        wanted = ceil(load.running / TARGET)
        if waiting and load.lag_seconds > LAG_SECONDS:
            wanted = max(wanted, 2 * load.slots)
        elif load.running < FULL * load.slots:
            wanted = min(wanted, load.slots)
        if wanted > load.slots:
            wanted = max(load.slots, min(wanted, load.running + waiting))
    return wanted if load.max_running is None else min(wanted, load.max_running)


def workers_wanted(loads: Iterable[QueueLoad], slots: int) -> int:
    """How many workers with `slots` slots in each queue the pool needs: as many as the queue that needs most."""
    return max((ceil((slots_wanted(load) - load.elsewhere) / slots) for load in loads), default=0)


def decide(scale: Scale, wanted: int, bounds: Bounds, now: float) -> Scale:
    """The next size of the pool. `wanted`: from its load now. `now`: on any clock that only moves forward."""
    wish = Wish(now, bounds.nearest(wanted))
    wishes = (*(one for one in scale.wishes if now - one.at <= bounds.shrink_seconds), wish)
    lately = [one.workers for one in wishes if now - one.at <= GROW_SECONDS]
    watched = now - scale.since
    if watched >= GROW_SECONDS and (least := min(lately)) > scale.workers:
        return Scale(least, now)
    if watched >= bounds.shrink_seconds and (most := max(one.workers for one in wishes)) < scale.workers:
        return Scale(most, now)
    return replace(scale, wishes=wishes)
