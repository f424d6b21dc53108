from __future__ import annotations

from foliot.events import Event, EventBus, RunsPromoted
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.scheduler.promoter import BATCH, LONGEST_WAIT_SECONDS, Promoter
from foliot.store.store import Store


def delayed(seconds: float) -> NewRun:
    return NewRun(id=new_id(), task="t", queue="q", delay_seconds=seconds)


async def test_promotion_continues_at_once_while_batches_are_full(
    store: Store, events: EventBus, seen: list[Event]
) -> None:
    await store.run_inserts.insert_runs([delayed(0.001) for _ in range(BATCH + 1)])
    promoter = Promoter(store=store, clock=store.database.clock, events=events)
    assert await promoter.run_once() == 0
    assert await promoter.run_once() > 0
    assert [event.count for event in seen if isinstance(event, RunsPromoted)] == [BATCH, 1]


async def test_promotion_wakes_for_the_next_due_run_and_polls_before_a_distant_one(
    store: Store, events: EventBus
) -> None:
    promoter = Promoter(store=store, clock=store.database.clock, events=events)
    await store.run_inserts.insert_runs([delayed(3600)])
    assert 0.5 * LONGEST_WAIT_SECONDS < await promoter.run_once() <= LONGEST_WAIT_SECONDS
    await store.run_inserts.insert_runs([delayed(0.15)])
    assert 0 < await promoter.run_once() <= 0.15
