"""How many slots a load needs, and how a pool follows load curves that a simulation draws."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

import pytest

from foliot.model.scaling import SHRINK_SECONDS, Bounds, QueueLoad, Scale, decide, slots_wanted, workers_wanted

SLOTS = 8
STARTS_SECONDS = 4
"""A new worker serves only after this time."""


@pytest.mark.parametrize(
    ("load", "wanted"),
    [
        (QueueLoad(waiting=0, running=0, slots=16), 0),
        (QueueLoad(waiting=0, running=7, slots=16), 10),
        (QueueLoad(waiting=3, running=12, slots=16), 16),
        (QueueLoad(waiting=0, running=16, slots=16), 16),
        (QueueLoad(waiting=2, running=16, slots=16), 18),
        (QueueLoad(waiting=500, running=16, slots=16), 23),
        (QueueLoad(waiting=500, running=16, slots=16, lag_seconds=10.5), 32),
        (QueueLoad(waiting=500, running=2, slots=16, lag_seconds=10.5), 32),
        (QueueLoad(waiting=3, running=2, slots=16, lag_seconds=99), 16),
        (QueueLoad(waiting=3, running=0, slots=0), 1),
        (QueueLoad(waiting=0, running=3, slots=0), 0),
        (QueueLoad(waiting=500, running=16, slots=16, lag_seconds=99, is_paused=True), 16),
        (QueueLoad(waiting=500, running=0, slots=16, lag_seconds=99, is_paused=True), 0),
        (QueueLoad(waiting=500, running=10, slots=16, lag_seconds=99, max_running=10), 10),
    ],
)
def test_slots_for_a_load(load: QueueLoad, wanted: int) -> None:
    assert slots_wanted(load) == wanted


def test_a_pool_serves_its_neediest_queue_beside_the_workers_of_others() -> None:
    loads = [
        QueueLoad(waiting=0, running=1, slots=16),
        QueueLoad(waiting=90, running=16, slots=16, lag_seconds=30, elsewhere=8),
    ]
    assert workers_wanted(loads, SLOTS) == 3
    assert workers_wanted([], SLOTS) == 0


def test_a_pool_stays_within_its_bounds() -> None:
    bounds = Bounds(2, 4)
    scale = Scale(2, since=0.0)
    for now in range(400):
        scale = decide(scale, 99 if now < 100 else 0, bounds, float(now))
        assert 2 <= scale.workers <= 4
        assert len(scale.wishes) <= SHRINK_SECONDS + 1
    assert scale.workers == 2


@dataclass
class Simulation:
    """A queue, one second at a time. Every run takes `run_seconds` of a slot."""

    arrivals: Callable[[int], int]
    bounds: Bounds
    run_seconds: int = 4
    sizes: list[int] = field(default_factory=list)
    lags: list[int] = field(default_factory=list)

    def run(self, seconds: int) -> Simulation:
        scale, waiting, ends = Scale(self.bounds.least, since=0.0), deque[int](), deque[int]()
        ready_at = [0] * scale.workers
        for now in range(seconds):
            waiting.extend([now] * self.arrivals(now))
            while ends and ends[0] <= now:
                ends.popleft()
            slots = SLOTS * sum(at <= now for at in ready_at)
            while waiting and len(ends) < slots:
                waiting.popleft()
                ends.append(now + self.run_seconds)
            lag = now - waiting[0] if waiting else 0
            load = QueueLoad(len(waiting), len(ends), SLOTS * scale.workers, float(lag))
            scale = decide(scale, workers_wanted([load], SLOTS), self.bounds, float(now))
            ready_at = ready_at[: scale.workers]
            ready_at += [now + STARTS_SECONDS] * (scale.workers - len(ready_at))
            self.sizes.append(scale.workers)
            self.lags.append(lag)
        return self

    @property
    def turns(self) -> int:
        """How often the pool went from growing to shrinking, or back."""
        steps = [after - before for before, after in pairwise(self.sizes) if after != before]
        return sum(one * other < 0 for one, other in pairwise(steps))


def capacity(workers: int) -> float:
    """Runs a second."""
    return workers * SLOTS / 4


def test_a_step_of_load_is_followed_up_and_down_once() -> None:
    seen = Simulation(lambda now: 12 if 60 <= now < 900 else 0, Bounds(2, 8)).run(1500)
    assert seen.sizes[59] == 2
    assert max(seen.sizes) == 8, "the work that piled up while it grew needs more than the load alone"
    assert max(seen.lags[300:]) <= 10
    assert capacity(seen.sizes[880]) >= 12
    assert seen.sizes[-1] == 2
    assert seen.turns == 1


@pytest.mark.parametrize("rate", range(1, 16))
def test_a_constant_load_settles(rate: int) -> None:
    seen = Simulation(lambda now: rate, Bounds(1, 8)).run(3600)
    settled = set(seen.sizes[600:])
    assert len(settled) == 1
    assert capacity(settled.pop()) >= rate
    assert max(seen.lags[600:]) <= 10
    assert seen.turns <= 1


@pytest.mark.parametrize("seed", range(10))
def test_noise_makes_no_flapping(seed: int) -> None:
    random = Random(seed)
    seen = Simulation(lambda now: sum(random.random() < 0.1 for _ in range(70)), Bounds(1, 8)).run(7200)
    assert max(seen.lags[600:]) <= 10
    assert seen.turns <= 4


@pytest.mark.parametrize("period", [20, 45, 90, 150])
def test_bursts_that_come_again_soon_keep_their_workers(period: int) -> None:
    seen = Simulation(lambda now: 60 if now % period == 0 else 0, Bounds(1, 8)).run(3600)
    assert seen.turns <= 2


def test_slow_waves_are_followed_once_each() -> None:
    seen = Simulation(lambda now: round(7 - 6.5 * math.cos(now * math.tau / 1800)), Bounds(1, 8)).run(4 * 1800)
    assert seen.turns <= 8
    assert max(seen.sizes) >= 7
    assert min(seen.sizes[1800:]) <= 3


def test_more_than_the_pool_can_do_keeps_it_at_its_largest() -> None:
    seen = Simulation(lambda now: 40, Bounds(1, 8)).run(1200)
    assert set(seen.sizes[200:]) == {8}
    assert seen.turns == 0


def test_a_clock_that_jumps_ahead_changes_nothing_by_itself() -> None:
    busy = Scale(4, since=0.0)
    assert decide(busy, 4, Bounds(1, 8), 1e6).workers == 4
