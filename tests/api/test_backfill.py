"""Ticks of the past, run afterwards: each once, whatever ran before, one after the other unless asked otherwise."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.job import RecurringJob
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.scheduler.firer import Resumer
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from tests.support.jobs import make_job
from tests.support.runs import claim_runs

WORKER = new_id()


@pytest.fixture
async def job(store: Store) -> RecurringJob:
    return await make_job(store, cron="0 * * * *", overlap="allow_all")


@pytest.fixture
async def range_of_day(store: Store) -> dict[str, str]:
    """Twenty-four hours of the past."""
    end = (await store.jobs.database_now()).replace(minute=30, second=0, microsecond=0) - timedelta(hours=2)
    return {"from": (end - timedelta(days=1)).isoformat(), "to": end.isoformat()}


async def backfill(client: httpx.AsyncClient, job: RecurringJob, **body: Any) -> Any:
    answer = await client.post(f"/v1/jobs/{job.id}/backfill", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def count(sql: Any) -> int:
    return int(await sql.fetchval("select count(*) from foliot.runs"))


async def test_a_dry_run_says_what_would_run_and_runs_nothing(
    client: httpx.AsyncClient, job: RecurringJob, range_of_day: dict[str, str], sql: Any
) -> None:
    answer = await backfill(client, job, **range_of_day, dry_run=True)
    assert len(answer["ticks"]) == 24
    assert all(datetime.fromisoformat(tick).minute == 0 for tick in answer["ticks"])
    assert await count(sql) == 0


async def test_ticks_run_once_however_often_they_are_backfilled(
    client: httpx.AsyncClient, store: Store, job: RecurringJob, range_of_day: dict[str, str], sql: Any
) -> None:
    assert len((await backfill(client, job, **range_of_day, overlap="allow_all"))["ticks"]) == 24
    claims = await claim_runs(store, WORKER, {"default": 10}, ["t"])
    await store.runs.finish_runs(WORKER, [Outcome(c.run_id, c.token, RunState.SUCCEEDED) for c in claims])
    again = await backfill(client, job, **range_of_day, overlap="allow_all")
    assert (again["ticks"], again["already_run"]) == ([], 24)
    assert await count(sql) == 14


async def test_by_default_they_run_one_after_the_other_oldest_first(
    client: httpx.AsyncClient, store: Store, job: RecurringJob, range_of_day: dict[str, str], config: Config, events: EventBus
) -> None:
    answer = await backfill(client, job, **range_of_day)
    keeper = ShardKeeper(store=store, config=config, clock=store.database.clock, events=events)
    await keeper.run_once()
    resumer = Resumer(store=store, shards=keeper, clock=store.database.clock, events=events)
    for _ in answer["ticks"]:
        await resumer.run_once()
        await resumer.run_once()
        (claim,) = await claim_runs(store, WORKER, {"default": 10}, ["t"])
        await store.runs.finish_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED)])
    ticks = await store.jobs.list_ticks(job.id, 100)
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
async def test_a_range_that_makes_no_sense_is_refused(
    client: httpx.AsyncClient, job: RecurringJob, range_of_day: dict[str, str], sql: Any, change: dict[str, str], field: str
) -> None:
    answer = await client.post(f"/v1/jobs/{job.id}/backfill", json=range_of_day | change)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert await count(sql) == 0
