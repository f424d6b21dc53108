"""At most once holds while connections break under load. Starts are counted in files, outside of the database."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.store.store import Store
from tests.chaos.checker.history import Effect
from tests.chaos.tasks import LEDGER
from tests.support.processes import FoliotProcess
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

RUNS = 4000
CUTS = 5
CUT = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and application_name like 'foliot worker%'
"""


def starts(directory: Path) -> Counter[str]:
    lines = [line for file in directory.glob("*.jsonl") for line in file.read_bytes().splitlines()]
    effects = [msgspec.json.decode(line, type=Effect) for line in lines]
    return Counter(effect.run_id for effect in effects if effect.kind == "start")


async def test_no_run_starts_twice_when_connections_break_under_load(
    database_url: str, store: Store, sql: Any, tmp_path: Path
) -> None:
    environment = {"FOLIOT_DATABASE_URL": database_url, LEDGER: str(tmp_path)}
    workers = [
        FoliotProcess("worker", "tests.chaos.tasks:app", "--queue", "default=100", environment=environment)
        for _ in range(2)
    ]
    async with FoliotProcess("scheduler", environment=environment), workers[0], workers[1]:
        for worker in workers:
            await worker.event("ProcessStarted", part="worker")
        runs = [
            NewRun(id=new_id(), task="once", queue="default", payload='{"seconds": 0.01}') for _ in range(RUNS // 2)
        ]
        runs += [
            NewRun(id=new_id(), task="quick", queue="default", payload=f'{{"mark": "{number}"}}')
            for number in range(RUNS // 2)
        ]
        await store.run_inserts.insert_runs(runs)
        store.hints.send(["default"])
        for cut in range(1, CUTS + 1):
            # Under load: each break hits another part of the work.
            await until(
                partial(sql.fetchval, "select count(*) <= $1 from foliot.runs", RUNS * (CUTS + 1 - cut) // (CUTS + 1))
            )
            await sql.execute(CUT)
        await until(lambda: sql.fetchval("select count(*) = 0 from foliot.runs"))
    states = await sql.fetch("select state, reason, count(*) from foliot.history group by 1, 2")
    counted = starts(tmp_path)
    twice = [run_id for run_id, number in counted.items() if number > 1]
    assert not twice, f"{len(twice)} of {RUNS} runs started more than once"
    assert len(counted) == RUNS, "a run was never started"
    assert [tuple(row) for row in states] == [("succeeded", None, RUNS)]
