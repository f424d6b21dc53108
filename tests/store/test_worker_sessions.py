"""Leases that end early when the coordinator has lost the entry that they name."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from foliot.model.ids import new_id
from foliot.store.store import Store
from foliot.store.workers import CoordinatedLease
from tests.support.fake_clock import FakeClock
from tests.support.runs import claim, insert

LONG = 120.0


@pytest.fixture
def clock(fake_clock: FakeClock) -> FakeClock:
    return fake_clock


@pytest.fixture
async def worker(store: Store) -> UUID:
    worker = new_id()
    await store.workers.register_worker(worker, "worker", {"default": 1}, ["task"])
    return worker


async def beat(store: Store, worker: UUID, session: UUID | None) -> bool:
    lease = None if session is None else CoordinatedLease(session, 5.0, LONG)
    return (await store.workers.beat(worker, [], coordinated=lease)).is_renewed


async def test_a_lease_ends_early_only_after_the_one_that_it_replaced(
    store: Store, fake_clock: FakeClock, worker: UUID
) -> None:
    session = new_id()
    await fake_clock.advance(5)
    assert await beat(store, worker, session)
    assert await store.workers.worker_sessions() == {session: 5.0}
    # The worker may still trust what it registered with, if the answer got lost.
    await fake_clock.advance(9)
    assert await store.workers.end_sessions([session]) == 0
    await fake_clock.advance(2)
    assert await store.workers.remove_dead_workers() == 0
    assert await store.workers.end_sessions([session]) == 1
    assert await store.workers.end_sessions([session]) == 0
    await fake_clock.advance(0.1)
    assert await store.workers.remove_dead_workers() == 1
    assert not await beat(store, worker, session)


async def test_a_renewal_does_not_put_off_the_early_end(store: Store, fake_clock: FakeClock, worker: UUID) -> None:
    session = new_id()
    for _ in range(3):
        assert await beat(store, worker, session)
        await fake_clock.advance(16)
    assert await store.workers.end_sessions([session]) == 1


@pytest.mark.parametrize("is_without", [True, False])
async def test_a_worker_that_no_longer_relies_on_an_entry_keeps_its_lease(
    store: Store, fake_clock: FakeClock, worker: UUID, is_without: bool
) -> None:
    session = new_id()
    assert await beat(store, worker, session)
    await fake_clock.advance(60)
    assert await beat(store, worker, None if is_without else new_id())
    assert await store.workers.end_sessions([session]) == 0


async def test_a_long_lease_ends_by_itself(store: Store, fake_clock: FakeClock, worker: UUID) -> None:
    assert await beat(store, worker, new_id())
    await fake_clock.advance(LONG - 1)
    assert await store.workers.remove_dead_workers() == 0
    await fake_clock.advance(2)
    assert await store.workers.remove_dead_workers() == 1


async def test_a_look_tells_the_same_as_a_heartbeat_and_writes_nothing(store: Store, sql: Any) -> None:
    run_id = await insert(store)
    (claimed,) = await claim(store)
    worker = await sql.fetchval("select worker_id from foliot.runs where id = $1", run_id)
    session, held = new_id(), [(claimed.run_id, claimed.token), (new_id(), 1)]
    beaten = await store.workers.beat(worker, held, coordinated=CoordinatedLease(session, 5.0, LONG))
    before = await sql.fetchrow("select w.xmin::text, w.* from foliot.workers w where id = $1", worker)
    looked = await store.workers.look(worker, held, session)
    assert looked == beaten
    assert set(looked.to_end) == {held[1]}
    await store.cancellation.mark_cancelled([run_id], "no more", is_forced=False)
    await store.workers.drain_worker(worker)
    looked = await store.workers.look(worker, [], session)
    assert (looked.is_renewed, looked.is_draining, looked.owns_unheld) == (True, True, True)
    assert set((await store.workers.look(worker, held, session)).to_end) == set(held)
    assert before["beat_at"] == await sql.fetchval("select beat_at from foliot.workers where id = $1", worker)
    assert not (await store.workers.look(worker, held, new_id())).is_renewed
