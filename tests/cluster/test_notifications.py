"""Notifications about ended runs while workers are killed: each ending gets one notification, and none is forgotten."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.store.store import Store
from tests.support.http import answer, answering
from tests.support.processes import FoliotProcess
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(200)]

RUNS = 60


async def test_each_ending_is_notified_once_although_workers_die(database_url: str, store: Store, sql: Any) -> None:
    environment = {
        "FOLIOT_DATABASE_URL": database_url, "FOLIOT_HTTP_ALLOW_PRIVATE": "true", "FOLIOT_WORKER_TTL_SECONDS": "4",
        "FOLIOT_WORKER_BEAT_SECONDS": "1", "FOLIOT_LOST_ATTEMPTS_MAX": "10",
    }  # fmt: skip
    async with answering() as server, FoliotProcess("scheduler", environment=environment):
        server.answers["/hook"] = answer("200 OK")
        options = json.dumps({"notify": [{"url": f"{server.url}/hook", "on": ["completed", "failed"]}], "retries": 0})
        runs = [
            NewRun(
                new_id(),
                "simulate",
                "default",
                payload=json.dumps({"execution_time_ms": 100, "fail_rate": n % 2}),
                options=options,
            )
            for n in range(RUNS)
        ]
        await store.run_inserts.insert_runs(runs)
        for killed in (1, 2, 3):
            async with FoliotProcess("worker", "--queue", "default=4", environment=environment) as worker:
                # Under load: some runs have ended, others are running.
                await until(lambda: _has_ended(sql, 8 * killed))  # noqa: B023
                worker.kill_tree()
        async with FoliotProcess("worker", "--queue", "default=20", environment=environment):
            await until(lambda: sql.fetchval("select count(*) = 0 from foliot.runs"))
    told = await sql.fetch("select options ->> 'notifies' as run, state from foliot.history where task = 'http'")
    assert sorted(row["run"] for row in told) == sorted(str(run.id) for run in runs)
    assert {row["state"] for row in told} == {"succeeded"}
    # A message may arrive twice if its worker died before reporting it.
    assert {json.loads(asked.body)["id"] for asked in server.asked} == {str(run.id) for run in runs}


async def _has_ended(sql: Any, number: int) -> bool:
    return bool(await sql.fetchval("select count(*) >= $1 from foliot.history where task = 'simulate'", number))
