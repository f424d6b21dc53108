"""Firings are prepared ahead of their instant and visible only after it. Concurrent changes wait, or find nothing
done."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.job import RecurringJob
from foliot.scheduler.planner import Planner
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from foliot.store.ticks import Firing
from foliot.triggers.base import to_instant
from tests.support.jobs import make_job

RUNS = "select id, created_at, tick_at from foliot.runs order by tick_at"


@pytest.fixture
async def keeper(store: Store, config: Config, events: EventBus) -> ShardKeeper:
    keeper = ShardKeeper(store=store, config=config, clock=store.database.clock, events=events)
    await keeper.run_once()
    return keeper


async def soon_due(store: Store, **schedule: Any) -> tuple[RecurringJob, Firing]:
    """A job that is due in two or three seconds, and its firing: long enough for a busy machine to prepare it."""
    now = await store.jobs.database_now()
    job = await make_job(
        store, times=(now.replace(microsecond=0) + timedelta(seconds=3), now + timedelta(hours=1)), **schedule
    )
    ((due,), _) = await store.ticks.due_jobs([job.shard], 10, 10.0)
    return job, Planner(to_instant(now)).firing_of(due)


def instant_of(job: RecurringJob) -> tuple[int, datetime]:
    assert job.next_at is not None
    return to_instant(job.next_at), job.next_at


async def test_a_prepared_run_is_visible_at_its_instant_and_not_before(
    store: Store, keeper: ShardKeeper, sql: Any
) -> None:
    job, firing = await soon_due(store)
    fire, at = instant_of(job)
    async with store.ticks.firing_ahead(keeper.scheduler_id, keeper.epochs, fire) as fire_ticks:
        fired = await fire_ticks([firing])
        assert (fired.moved, fired.fired, fired.ended) == (frozenset({job.id}), 1, frozenset())
        assert await sql.fetch(RUNS) == []
    ((_, created_at, tick_at),) = await sql.fetch(RUNS)
    assert created_at == tick_at == at <= await sql.fetchval("select clock_timestamp()")


async def test_a_pause_or_an_edit_waits_for_a_prepared_tick(store: Store, keeper: ShardKeeper, sql: Any) -> None:
    job, firing = await soon_due(store)
    fire, at = instant_of(job)
    async with store.ticks.firing_ahead(keeper.scheduler_id, keeper.epochs, fire) as fire_ticks:
        await fire_ticks([firing])
        pausing = asyncio.create_task(store.jobs.pause_job(job.id, "enough", None))
    assert await pausing
    paused = await store.jobs.get_job(job.id, "")
    assert paused is not None
    assert paused.next_at is not None
    assert (paused.next_at > at, paused.fire_at) == (True, None)
    assert len(await sql.fetch(RUNS)) == 1


async def test_a_triggered_run_waits_for_a_prepared_tick(store: Store, keeper: ShardKeeper, sql: Any) -> None:
    job, firing = await soon_due(store)
    fire, at = instant_of(job)
    by_hand = new_id()
    async with store.ticks.firing_ahead(keeper.scheduler_id, keeper.epochs, fire) as fire_ticks:
        await fire_ticks([firing])
        triggering = asyncio.create_task(store.jobs.insert_triggered_run(by_hand, job.id))
    assert await triggering == "default"
    first, second = await sql.fetch(RUNS)
    assert (first["tick_at"], second["id"]) == (at, by_hand)


async def test_a_tick_with_an_open_run_is_not_decided_ahead(store: Store, keeper: ShardKeeper, sql: Any) -> None:
    job, firing = await soon_due(store)
    free, other = await soon_due(store)
    await store.jobs.insert_triggered_run(new_id(), job.id)
    fire, _ = instant_of(job)
    async with store.ticks.firing_ahead(keeper.scheduler_id, keeper.epochs, fire) as fire_ticks:
        assert (await fire_ticks([firing, other])).moved == {free.id}
    await sql.execute("delete from foliot.runs where job_id = $1", job.id)
    # The run has ended just in time.
    assert (await store.ticks.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).fired == 1


async def test_a_node_that_dies_while_preparing_has_done_nothing(store: Store, keeper: ShardKeeper, sql: Any) -> None:
    job, firing = await soon_due(store)
    fire, _ = instant_of(job)

    async def die() -> None:
        async with store.ticks.firing_ahead(keeper.scheduler_id, keeper.epochs, fire) as fire_ticks:
            await fire_ticks([firing])
            # Of this database only, because the server has others.
            idle = "state = 'idle in transaction' and datname = current_database()"
            await sql.fetch(f"select pg_terminate_backend(pid) from pg_stat_activity where {idle}")

    # The error depends on when the disconnect arrives.
    with pytest.raises(Exception, match=r"terminat|closed|in progress|connection"):
        await die()
    assert await sql.fetch(RUNS) == []
    await sql.execute(f"select pg_sleep_until('{job.next_at}')")
    assert (await store.ticks.fire_ticks(keeper.scheduler_id, keeper.epochs, [firing])).fired == 1


@pytest.mark.parametrize("fence", ["node", "epoch"])
async def test_a_node_without_the_shard_prepares_nothing(store: Store, keeper: ShardKeeper, fence: str) -> None:
    job, firing = await soon_due(store)
    fire, _ = instant_of(job)
    node: UUID = new_id() if fence == "node" else keeper.scheduler_id
    epochs = {shard: epoch - (fence == "epoch") for shard, epoch in keeper.epochs.items()}
    async with store.ticks.firing_ahead(node, epochs, fire) as fire_ticks:
        assert (await fire_ticks([firing])).moved == frozenset()
