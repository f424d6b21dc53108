"""Backfills run past ticks: each once, whatever ran before, and one after the other by default."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from foliot.clock import Clock, SystemClock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id, tick_run_id
from foliot.model.job import RecurringJob
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.scheduler.firer import Firer
from foliot.scheduler.loader import Loader
from foliot.scheduler.resumer import Resumer
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from foliot.triggers.base import to_instant
from tests.support.jobs import make_job
from tests.support.runs import claim_runs
from tests.support.waiting import until

WORKER = new_id()
WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


@pytest.fixture
def clock() -> Clock:
    """The real clock, because backfills look at the real past."""
    return SystemClock()


@pytest.fixture
async def job(store: Store) -> RecurringJob:
    return await make_job(store, cron="0 * * * *", overlap="allow_all")


@pytest.fixture
async def range_of_day(store: Store) -> dict[str, str]:
    """A range of twenty-four hours in the past."""
    end = (await store.jobs.database_now()).replace(minute=30, second=0, microsecond=0) - timedelta(hours=2)
    return {"from": (end - timedelta(days=1)).isoformat(), "to": end.isoformat()}


async def backfill(client: httpx.AsyncClient, job: RecurringJob, **body: Any) -> Any:
    answer = await client.post(f"/v1/jobs/{job.id}/backfill", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def count(sql: Any) -> int:
    return int(await sql.fetchval("select count(*) from foliot.runs"))


async def test_a_dry_run_lists_ticks_and_runs_nothing(
    client: httpx.AsyncClient, job: RecurringJob, range_of_day: dict[str, str], sql: Any
) -> None:
    answer = await backfill(client, job, **range_of_day, dry_run=True)
    assert len(answer["ticks"]) == 24
    assert all(datetime.fromisoformat(tick).minute == 0 for tick in answer["ticks"])
    assert await count(sql) == 0


async def test_a_tick_runs_once_however_often_it_is_backfilled(
    client: httpx.AsyncClient, store: Store, job: RecurringJob, range_of_day: dict[str, str], sql: Any
) -> None:
    assert len((await backfill(client, job, **range_of_day, overlap="allow_all"))["ticks"]) == 24
    claims = await claim_runs(store, WORKER, {"default": 10}, ["t"])
    await store.outcomes.finish_runs(WORKER, [Outcome(c.run_id, c.token, RunState.SUCCEEDED) for c in claims])
    again = await backfill(client, job, **range_of_day, overlap="allow_all")
    assert (again["ticks"], again["already_run"]) == ([], 24)
    assert await count(sql) == 14


async def test_by_default_they_run_one_after_the_other_oldest_first(
    client: httpx.AsyncClient,
    store: Store,
    job: RecurringJob,
    range_of_day: dict[str, str],
    config: Config,
    events: EventBus,
) -> None:
    answer = await backfill(client, job, **range_of_day)
    keeper = ShardKeeper(store=store, config=config, clock=store.database.clock, events=events)
    await keeper.run_once()
    resumer = Resumer(store=store, shards=keeper, clock=store.database.clock, events=events)
    for _ in answer["ticks"]:
        await resumer.run_once()
        await resumer.run_once()
        (claim,) = await claim_runs(store, WORKER, {"default": 10}, ["t"])
        await store.outcomes.finish_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED)])
    ticks = await store.ticks.list_ticks(job.id, 100)
    assert [tick.outcome for tick in ticks] == ["succeeded"] * 24


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"to": "2026-01-01T00:00:00Z", "from": "2026-01-02T00:00:00Z"}, "to"),
        ({"to": "2100-01-01T00:00:00Z", "from": "2099-12-31T00:00:00Z"}, "to"),
        ({"to": "2026-01-01T00:00:00Z", "from": "1980-01-02T00:00:00Z"}, "to"),
        ({"to": "2026-01-01T00:00:00Z", "from": "0001-01-02T00:00:00Z"}, "from"),
        ({"to": "2026-01-01T00:00:00", "from": "2025-12-31T00:00:00Z"}, "to"),
        ({"overlap": "skip"}, "overlap"),
    ],
)
async def test_an_invalid_range_is_refused(
    client: httpx.AsyncClient,
    job: RecurringJob,
    range_of_day: dict[str, str],
    sql: Any,
    change: dict[str, str],
    field: str,
) -> None:
    answer = await client.post(f"/v1/jobs/{job.id}/backfill", json=range_of_day | change)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert await count(sql) == 0


async def test_a_tick_that_the_schedule_will_still_fire_is_left_out(
    client: httpx.AsyncClient, store: Store, config: Config, events: EventBus
) -> None:
    """The tick is late because of its jitter or because no scheduler was running. A backfill of it would run it
    twice."""
    now = await store.jobs.database_now()
    job = await make_job(store, cron="0 * * * *", now=now - timedelta(hours=1))
    await backfill(
        client, job, **{"from": (now - timedelta(hours=3)).isoformat(), "to": now.isoformat()}, overlap="allow_all"
    )
    claims = await claim_runs(store, WORKER, {"default": 10}, ["t"])
    await store.outcomes.finish_runs(WORKER, [Outcome(c.run_id, c.token, RunState.SUCCEEDED) for c in claims])
    keeper = ShardKeeper(store=store, config=config, clock=store.database.clock, events=events)
    await keeper.run_once()
    loader = Loader(store=store, shards=keeper, clock=store.database.clock, events=events)
    await loader.run_once()
    await Firer(store=store, shards=keeper, loader=loader, clock=store.database.clock, events=events).run_once()
    ticks = [tick.tick_at for tick in await store.ticks.list_ticks(job.id, 100)]
    assert len(ticks) == len(set(ticks)) == 3


async def test_a_tick_whose_run_ends_during_the_backfill_does_not_run_again(
    store: Store, job: RecurringJob, sql: Any
) -> None:
    tick = (await store.jobs.database_now()).replace(minute=0, second=0, microsecond=0)
    ticks = {tick_run_id(job.id, to_instant(tick)): tick}
    assert await store.backfill.insert_backfill(job.id, ticks, RunState.READY) == [tick]
    (claim,) = await claim_runs(store, WORKER, {"default": 1}, ["t"])
    async with store.database.transaction() as session:
        assert await store.outcomes.finish_in(session, WORKER, Outcome(claim.run_id, claim.token, RunState.SUCCEEDED))
        again = asyncio.create_task(store.backfill.insert_backfill(job.id, ticks, RunState.READY))

        async def waits_or_has_ended() -> bool:
            return again.done() or bool(await sql.fetchval(WAITING))

        await until(waits_or_has_ended)
    assert (await again, await count(sql)) == ([], 0)
