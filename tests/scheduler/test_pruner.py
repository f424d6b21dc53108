"""Housekeeping works in small steps, and a failed chore does not stop the others."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.clock import Clock
from foliot.events import Event, EventBus, RunsAdmitted, ServiceFailed
from foliot.model.circuit_breaker import Circuit
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.scheduler.gatekeeper import Gatekeeper
from foliot.scheduler.pruner import Pruner
from foliot.store.limits import FORGOTTEN
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock

OLD_STARTS = (
    "insert into foliot.rate_starts select 'k', $2::timestamptz - interval '2 days' from generate_series(1, $1::bigint)"
)
OLD_KEYS = """
insert into foliot.idempotency select 'key ' || n, '', 'null', $2::timestamptz - interval '1 second'
    from generate_series(1, $1::bigint) n
"""


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
def pruner(store: Store, fake_clock: FakeClock, events: EventBus) -> Pruner:
    return Pruner(store=store, clock=fake_clock, events=events)


async def test_old_starts_of_rates_are_deleted_in_batches(
    store: Store, pruner: Pruner, fake_clock: FakeClock, sql: Any
) -> None:
    await sql.execute(OLD_STARTS, FORGOTTEN * 2 + 1, fake_clock.now())
    await sql.execute("insert into foliot.rate_starts values ('k', $1)", fake_clock.now())
    assert await store.limits.forget_rate_starts() == FORGOTTEN
    await pruner.run_once()
    assert await sql.fetchval("select count(*) from foliot.rate_starts") == 1


async def test_a_failed_chore_is_reported_and_the_others_are_done(
    pruner: Pruner, fake_clock: FakeClock, sql: Any, seen: list[Event]
) -> None:
    await sql.execute(OLD_KEYS, 3, fake_clock.now())
    await sql.execute("alter table foliot.rate_starts rename to elsewhere")
    delay = await pruner.run_once()
    assert await sql.fetchval("select count(*) from foliot.idempotency") == 0
    (failed,) = [event for event in seen if isinstance(event, ServiceFailed)]
    assert (failed.service, failed.error.split(":")[0]) == ("Pruner", "forget_rate_starts")
    assert 0 < delay < 10, "it is tried again soon"
    await sql.execute("alter table foliot.elsewhere rename to rate_starts")
    await sql.execute(OLD_STARTS, 3, fake_clock.now())
    await fake_clock.advance(delay + 0.001)
    await pruner.run_once()
    assert await sql.fetchval("select count(*) from foliot.rate_starts") == 0


async def test_limits_are_kept_up_while_probes_fail(
    store: Store, fake_clock: FakeClock, events: EventBus, sql: Any, seen: list[Event]
) -> None:
    await store.circuit_breaker.record_failures({"t": 1}, {"t": Circuit(failures=1, seconds=1)})
    await store.workers.register_worker(new_id(), "w", {"q": 1}, ["t"])
    await store.run_inserts.insert_runs([NewRun(id=new_id(), task="t", queue="q")])
    await sql.execute(
        "create function foliot.fail() returns trigger language plpgsql as 'begin raise division_by_zero; end'"
    )
    await sql.execute("create trigger fail before update on foliot.circuits execute function foliot.fail()")
    await fake_clock.advance(2)
    gatekeeper = Gatekeeper(store=store, clock=fake_clock, events=events)
    limited = '{"concurrency": {"key": "k", "limit": 9, "at_limit": "wait"}}'
    for number in range(1, 4):
        await store.run_inserts.insert_runs([NewRun(id=new_id(), task="u", queue="q", options=limited)])
        await gatekeeper.run_once()
        assert len([event for event in seen if isinstance(event, RunsAdmitted)]) == number
    failed = [event.error for event in seen if isinstance(event, ServiceFailed)]
    assert [error.split(":")[0] for error in failed] == ["send_probes"], "it backs off, the others do not"
