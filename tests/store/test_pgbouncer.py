"""Everything works through PgBouncer in transaction mode, which gives us a session for one transaction only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.store.queries import Query
from foliot.store.store import Store, open_store
from tests.support.pgbouncer import pgbouncer_to
from tests.support.runs import claim_runs


@pytest.fixture
async def pooled(database_url: str, tmp_path: Path, events: EventBus) -> AsyncIterator[Store]:
    async with (
        pgbouncer_to(database_url, tmp_path) as url,
        open_store(url, config=Config(), clock=SystemClock(), events=events, part="test") as store,
    ):
        yield store


async def test_the_pooler_is_detected_and_a_direct_connection_is_not_mistaken_for_one(
    pooled: Store, store: Store
) -> None:
    assert pooled.database.is_pooled
    assert not store.database.is_pooled


async def test_migrations_and_partitions_work_through_it(pooled: Store) -> None:
    await pooled.migrate()
    await pooled.check_schema()
    await pooled.partitions.drop_expired()


async def test_every_statement_has_its_limits_behind_the_pooler(pooled: Store, config: Config) -> None:
    query = Query("limit", "select setting::float8 / 1000 from pg_settings where name = 'statement_timeout'")
    assert await pooled.database.fetch_value(query) == config.database_statement_seconds


async def test_many_clients_on_few_sessions_run_jobs_from_submission_to_end(pooled: Store, sql: Any) -> None:
    """More clients than PgBouncer has sessions, so statements of different clients share one."""

    async def client() -> int:
        worker, done = new_id(), 0
        await pooled.run_inserts.insert_runs([NewRun(id=new_id(), task="t", queue="q") for _ in range(50)])
        while claims := await claim_runs(pooled, worker, {"q": 20}, ["t"]):
            done += await pooled.outcomes.finish_runs(
                worker, [Outcome(c.run_id, c.token, RunState.SUCCEEDED) for c in claims]
            )
        return done

    assert sum(await asyncio.gather(*(client() for _ in range(10)))) == 500
    assert await sql.fetchval("select count(distinct id) from foliot.history") == 500
