"""Durable functions whose workers are killed and frozen: each step is recorded once, and late records are refused."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.store.store import Store
from tests.cluster.durable_app import LEDGER, STEPS
from tests.support.processes import FoliotProcess
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

APP = "tests.cluster.durable_app:app"


def around(database_url: str, ledger: Path) -> dict[str, str]:
    return {
        "FOLIOT_DATABASE_URL": database_url,
        "FOLIOT_LOG_LEVEL": "info",
        "FOLIOT_WORKER_TTL_SECONDS": "6",
        "FOLIOT_WORKER_BEAT_SECONDS": "1",
        LEDGER: str(ledger),
    }


async def submit(store: Store) -> NewRun:
    run = NewRun(id=new_id(), task="ten_steps", queue="default")
    await store.run_inserts.insert_runs([run])
    store.hints.send(["default"])
    return run


@pytest.mark.slow
async def test_a_function_of_ten_steps_that_is_killed_ten_times_records_each_step_once(
    database_url: str, store: Store, sql: Any, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    ledger.touch()
    environment = around(database_url, ledger)
    async with FoliotProcess("scheduler", environment=environment):
        run = None
        for kills in range(STEPS):
            async with FoliotProcess("worker", APP, environment=environment) as worker:
                await worker.event("ProcessStarted", part="worker")
                run = run or await submit(store)
                # One more step than at the last kill, so the function makes progress and the next step has begun.
                enough = kills + 1
                await until(partial(sql.fetchval, "select count(*) >= $1 from foliot.checkpoints", enough), seconds=120)
                worker.kill_tree()
        async with FoliotProcess("worker", APP, environment=environment):
            await until(lambda: sql.fetchval("select count(*) = 1 from foliot.history"), seconds=120)
    row = await sql.fetchrow("select state, lost, result::text, error::text from foliot.history")
    assert (row["state"], row["result"]) == ("succeeded", "[0,1,4,9,16,25,36,49,64,81]"), dict(row)
    assert row["lost"] >= STEPS - 1, "nobody died at work"
    names = await sql.fetch("select name from foliot.checkpoints order by started_at")
    assert [name[0] for name in names] == [f"step {number}" for number in range(STEPS)]
    assert run is not None
    keys = {tuple(line.split(" ", 1)) for line in ledger.read_text().splitlines()}
    assert keys == {(str(number), f"{run.id}:step {number}") for number in range(STEPS)}


async def test_a_worker_that_was_frozen_past_its_lease_records_nothing_when_it_comes_back(
    database_url: str, store: Store, sql: Any, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    ledger.touch()
    environment = around(database_url, ledger)
    async with (
        FoliotProcess("scheduler", environment=environment),
        FoliotProcess("worker", APP, environment=environment) as frozen,
    ):
        await frozen.event("ProcessStarted", part="worker")
        await submit(store)
        await until(lambda: sql.fetchval("select count(*) >= 2 from foliot.checkpoints"))
        frozen.signal(signal.SIGSTOP)
        async with FoliotProcess("worker", APP, environment=environment):
            await until(lambda: sql.fetchval("select count(*) = 1 from foliot.history"), seconds=120)
            before = await sql.fetch("select * from foliot.checkpoints order by name")
            frozen.signal(signal.SIGCONT)
            await frozen.event("WorkerExpired")
            assert await sql.fetch("select * from foliot.checkpoints order by name") == before
    row = await sql.fetchrow("select state, attempt, lost from foliot.history")
    assert tuple(row) == ("succeeded", 2, 1)
    tokens = await sql.fetch("select distinct token from foliot.checkpoints order by token")
    assert [token[0] for token in tokens] == [1, 2]
