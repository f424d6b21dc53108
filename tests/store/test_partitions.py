from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from foliot.clock import Clock
from foliot.events import Event, EventBus, PartitionsKept
from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.scheduler.pruner import Pruner
from foliot.store.partitions import DAYS_AHEAD, PARENTS, partition_name
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.runs import claim_runs

WORKER = new_id()


@pytest.fixture
def fake_clock() -> FakeClock:
    """Late in the evening in the test server's own zone, when the next day has begun in UTC."""
    return FakeClock(datetime.now(UTC).replace(hour=3, minute=0, second=0, microsecond=0))


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


async def partitions(sql: Any, parent: str) -> list[str]:
    rows = await sql.fetch(
        "select inhrelid::regclass::text from pg_inherits where inhparent = $1::text::regclass", f"foliot.{parent}"
    )
    return [row[0].removeprefix("foliot.") for row in rows]


async def finish_one(store: Store) -> NewRun:
    run = NewRun(id=new_id(), task="t", queue="q")
    await store.run_inserts.insert_runs([run])
    (claim,) = await claim_runs(store, WORKER, {"q": 1}, ["t"])
    assert await store.outcomes.finish_runs(WORKER, [Outcome(run.id, claim.token, RunState.SUCCEEDED)]) == 1
    return run


async def test_partitions_for_a_week_are_created_ahead(store: Store, sql: Any, fake_clock: FakeClock) -> None:
    for days_later in (0, 1, 30):
        await fake_clock.advance(86_400 * days_later)
        await store.partitions.create_missing()
        today = fake_clock.now().date()
        for parent in PARENTS:
            expected = {partition_name(parent, today + timedelta(days=n)) for n in range(DAYS_AHEAD + 1)}
            assert expected <= set(await partitions(sql, parent))
    assert await store.partitions.create_missing() == 0


async def test_nodes_that_create_the_same_days_do_not_conflict(store: Store, sql: Any, fake_clock: FakeClock) -> None:
    await fake_clock.advance(86_400 * 20)
    await asyncio.gather(*(store.partitions.create_missing() for _ in range(5)))
    assert partition_name("history", fake_clock.now().date()) in await partitions(sql, "history")


async def test_a_finish_on_a_day_without_a_partition_creates_it(store: Store, sql: Any, fake_clock: FakeClock) -> None:
    await fake_clock.advance(86_400 * 50)
    run = await finish_one(store)
    day = partition_name("history", fake_clock.now().date())
    assert await sql.fetchval(f"select id from foliot.{day}") == run.id


async def test_a_retry_on_a_day_without_a_partition_creates_it(store: Store, sql: Any, fake_clock: FakeClock) -> None:
    await fake_clock.advance(86_400 * 50)
    run = NewRun(id=new_id(), task="t", queue="q")
    await store.run_inserts.insert_runs([run])
    (claim,) = await claim_runs(store, WORKER, {"q": 1}, ["t"])
    assert (
        await store.outcomes.retry_runs(WORKER, [Outcome(run.id, claim.token, RunState.SCHEDULED, "error", 1.0)]) == 1
    )
    assert (
        await sql.fetchval(f"select run_id from foliot.{partition_name('attempts', fake_clock.now().date())}") == run.id
    )


async def test_retention_drops_whole_days_and_nothing_younger(
    store: Store, sql: Any, fake_clock: FakeClock, events: EventBus, seen: list[Event]
) -> None:
    old = await finish_one(store)
    await fake_clock.advance(86_400 * 2)
    young = await finish_one(store)
    await fake_clock.advance(86_400 * 29)
    await Pruner(store=store, clock=fake_clock, events=events).run_once()
    assert sum(event.dropped for event in seen if isinstance(event, PartitionsKept)) == 2 * (len(PARENTS) - 1)
    assert await sql.fetchval("select array_agg(id) from foliot.history") == [young.id]
    assert await store.runs.get_run(old.id) is None
    assert (
        await sql.fetchval(
            "select count(*) from pg_tables where tablename = $1",
            partition_name("history", (fake_clock.now() - timedelta(31)).date()),
        )
        == 0
    )


async def test_creating_and_dropping_days_neither_waits_for_readers_nor_blocks_writers(
    store: Store, database_url: str, fake_clock: FakeClock
) -> None:
    await finish_one(store)
    reader = await asyncpg.connect(database_url)
    async with reader.transaction():
        await reader.fetch("select * from foliot.history")
        await fake_clock.advance(86_400 * 20)
        assert await store.partitions.create_missing() > 0
        await finish_one(store)
    await reader.close()


async def test_an_interrupted_detach_is_finished_later(
    store: Store, sql: Any, database_url: str, fake_clock: FakeClock
) -> None:
    await finish_one(store)
    day = partition_name("history", fake_clock.now().date())
    reader = await asyncpg.connect(database_url)
    async with reader.transaction():
        await reader.fetch("select * from foliot.history")
        await sql.execute("set statement_timeout = '300ms'")
        with pytest.raises(asyncpg.QueryCanceledError):
            await sql.execute(f"alter table foliot.history detach partition foliot.{day} concurrently")
    await reader.close()
    assert await sql.fetchval("select count(*) from pg_inherits where inhdetachpending") == 1
    await fake_clock.advance(86_400 * 40)
    await store.partitions.create_missing()
    await store.partitions.drop_expired()
    assert day not in await partitions(sql, "history")
    assert await sql.fetchval("select to_regclass($1)", f"foliot.{day}") is None
