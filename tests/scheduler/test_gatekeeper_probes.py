"""The probe of an open circuit: one at a time, and never one that keeps the circuit open because it cannot start."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.circuit_breaker import Circuit
from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.run import Claim, NewRun
from foliot.model.states import RunState
from foliot.scheduler.expirer import Expirer
from foliot.scheduler.gatekeeper import Gatekeeper
from foliot.scheduler.reaper import Reaper
from foliot.store.circuit_breaker import PROBE_SECONDS
from foliot.store.queue_limits import QueueLimits
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.runs import claim_runs

FIRST, SECOND = new_id(), new_id()
"""A worker of the queue `a`, and one of the queue `b`."""
LEASE_SECONDS = 3600.0


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
def gatekeeper(store: Store, fake_clock: FakeClock, events: EventBus) -> Gatekeeper:
    return Gatekeeper(store=store, clock=fake_clock, events=events)


async def insert(store: Store, queue: str, task: str = "t", **fields: Any) -> UUID:
    run = NewRun(id=new_id(), task=task, queue=queue, **fields)
    await store.run_inserts.insert_runs([run])
    return run.id


async def claim(store: Store, queue: str) -> list[Claim]:
    return await claim_runs(store, FIRST if queue == "a" else SECOND, {queue: 10}, ["t", "u"])


async def probes(sql: Any) -> list[UUID]:
    return [row[0] for row in await sql.fetch("select id from foliot.runs where is_probe")]


async def succeed(store: Store, claims: list[Claim], worker_id: UUID) -> None:
    await store.outcomes.finish_runs(worker_id, [Outcome(one.run_id, one.token, RunState.SUCCEEDED) for one in claims])
    assert await store.circuit_breaker.record_successes(["t"], [one.run_id for one in claims]) == ["t"]


@pytest.fixture
async def probe(store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, sql: Any) -> UUID:
    """A probe chosen in the queue `a`, whose run came first, and not claimed. The leases of the workers last."""
    await store.circuit_breaker.record_failures({"t": 1}, {"t": Circuit(failures=1, seconds=600)})
    for worker_id, queue in ((FIRST, "a"), (SECOND, "b")):
        await store.workers.register_worker(worker_id, queue, {queue: 10}, ["t", "u"])
    await sql.execute("update foliot.workers set expires_at = expires_at + interval '1 day'")
    run_id = await insert(store, "a", unique_key="the probe", expires_at=fake_clock.now() + timedelta(seconds=700))
    await fake_clock.advance(1)
    await insert(store, "b")
    await fake_clock.advance(600)
    await gatekeeper.run_once()
    assert await probes(sql) == [run_id]
    return run_id


async def pause_its_queue(store: Store, probe: UUID, sql: Any, clock: FakeClock) -> None:
    await store.pauses.put_pause("queue", "a", None, None, None)


async def lose_its_workers(store: Store, probe: UUID, sql: Any, clock: FakeClock) -> None:
    await store.workers.remove_worker(FIRST)


async def drain_its_workers(store: Store, probe: UUID, sql: Any, clock: FakeClock) -> None:
    assert await store.workers.drain_worker(FIRST)


async def fill_its_queue(store: Store, probe: UUID, sql: Any, clock: FakeClock) -> None:
    busy = await insert(store, "a", "u")
    await sql.execute("update foliot.runs set state = 'running', worker_id = $2 where id = $1", busy, FIRST)
    await store.queues.put_queue("a", QueueLimits(max_running=1))


async def keep_its_workers_busy(store: Store, probe: UUID, sql: Any, clock: FakeClock) -> None:
    await clock.advance(PROBE_SECONDS + 1)


async def park_it(store: Store, probe: UUID, sql: Any, clock: FakeClock) -> None:
    """Parks it, as a node of an older version may at the moment of the choice; and no worker serves its queue any
    more."""
    await sql.execute("update foliot.runs set state = 'held', held_by = 'circuit' where id = $1", probe)
    await lose_its_workers(store, probe, sql, clock)


async def cancel_it(store: Store, probe: UUID, sql: Any, clock: FakeClock) -> None:
    await store.cancellation.mark_cancelled([probe], "not any more", is_forced=False)


async def end_it(store: Store, probe: UUID, sql: Any, clock: FakeClock) -> None:
    await cancel_it(store, probe, sql, clock)
    assert await store.cancellation.end_cancelled() == 1


async def let_it_expire(store: Store, probe: UUID, sql: Any, clock: FakeClock) -> None:
    await sql.execute("update foliot.runs set expires_at = now() - interval '100 years' where id = $1", probe)


async def put_it_off(store: Store, probe: UUID, sql: Any, clock: FakeClock) -> None:
    """Replaces it by a job with the same unique key that is due tomorrow."""
    later = NewRun(
        id=new_id(), task="t", queue="a", unique_key="the probe", on_conflict="replace", delay_seconds=86_400.0
    )
    (replaced,) = await store.submissions.submit([later])
    assert (replaced.id, replaced.state) == (probe, RunState.SCHEDULED)


async def put_it_off_elsewhere(store: Store, probe: UUID, sql: Any, clock: FakeClock) -> None:
    """Replaces it by the SQL function, which leaves the mark of the probe."""
    await sql.execute(
        "update foliot.runs set state = 'scheduled', due_at = now() + interval '100 years' where id = $1", probe
    )


async def delete_it(store: Store, probe: UUID, sql: Any, clock: FakeClock) -> None:
    await sql.execute("delete from foliot.runs where id = $1", probe)


@pytest.mark.parametrize(
    "happens",
    [
        pause_its_queue, lose_its_workers, drain_its_workers, fill_its_queue, keep_its_workers_busy, park_it,
        cancel_it, end_it,
        let_it_expire, put_it_off, put_it_off_elsewhere, delete_it,
    ],
)  # fmt: skip
async def test_a_probe_that_can_not_start_is_replaced_from_another_queue(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, sql: Any, probe: UUID, happens: Any
) -> None:
    await happens(store, probe, sql, fake_clock)
    await gatekeeper.run_once()
    (chosen,) = await probes(sql)
    assert chosen != probe
    claims = await claim(store, "b")
    assert [one.run_id for one in claims] == [chosen]
    await gatekeeper.run_once()
    assert await probes(sql) == [chosen], "while it runs there is no other"
    await succeed(store, claims, SECOND)
    await insert(store, "b")
    assert len(await claim(store, "b")) == 1, "the circuit is closed"


async def test_a_probe_that_can_start_is_kept(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, sql: Any, probe: UUID
) -> None:
    for _ in range(3):
        await fake_clock.advance(1)
        await gatekeeper.run_once()
    assert await probes(sql) == [probe]
    assert [one.run_id for one in await claim(store, "a")] == [probe]
    await fake_clock.advance(PROBE_SECONDS * 10)
    await gatekeeper.run_once()
    assert await probes(sql) == [probe], "one that runs takes as long as it takes"


async def test_unstarted_probes_rotate_through_the_queues(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, sql: Any, probe: UUID
) -> None:
    await store.workers.register_worker(new_id(), "c", {"c": 1}, ["t"])
    await sql.execute("update foliot.workers set expires_at = expires_at + interval '1 day'")
    await insert(store, "c")
    queues = []
    for _ in range(4):
        await fake_clock.advance(PROBE_SECONDS + 1)
        await gatekeeper.run_once()
        queues.append(await sql.fetchval("select string_agg(queue, ',') from foliot.runs where is_probe"))
    assert queues == ["b", "c", "a", "b"]


@pytest.mark.parametrize("kind", ["everything", "task"])
async def test_the_probe_survives_a_pause_of_everything(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, sql: Any, probe: UUID, kind: Any
) -> None:
    name = "t" if kind == "task" else ""
    await store.pauses.put_pause(kind, name, None, None, None)
    await fake_clock.advance(PROBE_SECONDS * 2)
    await gatekeeper.run_once()
    assert await claim(store, "a") == await claim(store, "b") == []
    await store.pauses.delete_pause(kind, name)
    await gatekeeper.run_once()
    (chosen,) = await probes(sql)
    assert [one.run_id for one in [*await claim(store, "a"), *await claim(store, "b")]] == [chosen]


async def test_the_only_run_is_probed_again_when_its_queue_resumes(
    store: Store, gatekeeper: Gatekeeper, sql: Any, probe: UUID
) -> None:
    await sql.execute("delete from foliot.runs where queue = 'b'")
    await store.pauses.put_pause("queue", "a", None, None, None)
    await sql.execute("update foliot.runs set state = 'held', held_by = 'circuit' where id = $1", probe)
    await gatekeeper.run_once()
    assert await claim(store, "a") == []
    await store.pauses.delete_pause("queue", "a")
    await gatekeeper.run_once()
    assert [one.run_id for one in await claim(store, "a")] == [probe]


async def test_a_probe_whose_worker_died_is_claimed_by_another_one(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, events: EventBus, sql: Any, probe: UUID
) -> None:
    assert [one.run_id for one in await claim(store, "a")] == [probe]
    await sql.execute("delete from foliot.workers where id = $1", FIRST)
    await Reaper(store=store, config=Config(), clock=fake_clock, events=events).run_once()
    await store.workers.register_worker(new_id(), "another", {"a": 1}, ["t"])
    await gatekeeper.run_once()
    (chosen,) = await probes(sql)
    assert [one.run_id for one in [*await claim(store, "a"), *await claim(store, "b")]] == [chosen]


async def test_an_expired_probe_is_replaced(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, events: EventBus, sql: Any, probe: UUID
) -> None:
    await fake_clock.advance(120)
    await Expirer(store=store, clock=fake_clock, events=events).run_once()
    await gatekeeper.run_once()
    (chosen,) = await probes(sql)
    assert chosen != probe


async def test_two_nodes_that_choose_at_the_same_time_choose_one_probe(
    store: Store, fake_clock: FakeClock, sql: Any
) -> None:
    await store.workers.register_worker(FIRST, "w", {"a": 10}, ["t"])
    for _ in range(20):
        await sql.execute("delete from foliot.circuits; delete from foliot.runs")
        await store.circuit_breaker.record_failures({"t": 1}, {"t": Circuit(failures=1, seconds=0.001)})
        await fake_clock.advance(0.01)
        for _ in range(3):
            await insert(store, "a")
        await asyncio.gather(*(store.circuit_breaker.send_probes() for _ in range(4)))
        assert len(await probes(sql)) == 1
