"""The runs that a worker leaves to workers with another version of their task."""

from __future__ import annotations

from foliot.model.ids import new_id
from foliot.worker.declined_runs import KEPT_MAX, KEPT_SECONDS, DeclinedRuns
from tests.support.fake_clock import FakeClock


async def test_a_declined_run_is_kept_for_a_while() -> None:
    clock = FakeClock()
    declined, run_id, later = DeclinedRuns(clock), new_id(), new_id()
    assert declined.ids() == []
    declined.add(run_id)
    await clock.advance(KEPT_SECONDS - 1)
    declined.add(later)
    assert declined.ids() == [run_id, later]
    await clock.advance(2)
    assert declined.ids() == [later]


async def test_a_run_that_is_declined_again_is_kept_longer() -> None:
    clock = FakeClock()
    declined, run_id, other = DeclinedRuns(clock), new_id(), new_id()
    declined.add(run_id)
    declined.add(other)
    await clock.advance(KEPT_SECONDS - 1)
    declined.add(run_id)
    await clock.advance(2)
    assert declined.ids() == [run_id]


def test_the_oldest_are_forgotten_when_there_are_many() -> None:
    declined = DeclinedRuns(FakeClock())
    run_ids = [new_id() for _ in range(KEPT_MAX + 2)]
    for run_id in run_ids:
        declined.add(run_id)
    assert declined.ids() == run_ids[2:]
