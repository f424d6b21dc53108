"""Real workers with hostile tasks: every attempt ends, innocent jobs run exactly once, and SIGTERM stops the worker."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from typing import Any
from uuid import UUID

import psutil
import pytest

from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.store.store import Store
from tests.hostile.apps import RESULTS
from tests.support.processes import FoliotProcess
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

APP = "tests.hostile.apps:app"
GRACE = 2.0
INNOCENTS = 50
# Time beyond the grace period until the last resort ends the worker, plus room for a busy machine.
STOP_SECONDS = GRACE + 20 + 20

HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("mute", {}), ("mute_thread", {}), ("mute_process", {}), ("mute_transaction", {}),
    ("loud", {}), ("loud_thread", {}), ("loud_process", {}),
    ("liar", {}), ("liar_thread", {}), ("liar_process", {}), ("liar_transaction", {}),
    ("leave_in_the_background", {}), ("leave_in_a_callback", {}), ("leave_in_a_group", {}),
    ("leave", {}), ("interrupt", {}), ("end_generator", {}), ("cancel_itself", {}), ("recurse", {}),
    ("remember_too_much", {}),
    ("swallow", {}), ("swallow_in_context", {}), ("swallow_transaction", {}), ("swallow_process", {}),
    ("sleep_in_a_thread", {}), ("sleep_in_the_pool", {}),
    *((task, {"what": what}) for task in ("give", "give_thread", "give_process",
        "give_transaction") for what in RESULTS),
    ("generate", {}), ("stop_the_loop", {}), ("close_the_loop", {}), ("run_a_loop", {}), ("cancel_everything", {}),
    ("take_signals", {}), ("replace_functions", {}), ("warn_loudly", {}), ("set_the_context", {}),
    ("close_everything", {}), ("print_a_lot", {}), ("answer_garbage", {}), ("vanish", {}),
]  # fmt: skip
HARMLESS = {
    "leave_in_the_background", "leave_in_a_callback", "replace_functions", "stop_the_loop", "cancel_everything",
    "take_signals", "warn_loudly", "set_the_context", "print_a_lot",
}  # fmt: skip
"""They do no harm to the worker, nor to themselves."""


def around(database_url: str, **settings: str) -> dict[str, str]:
    return {
        "FOLIOT_DATABASE_URL": database_url,
        "FOLIOT_LOG_LEVEL": "info",
        "FOLIOT_GRACE_SECONDS": str(GRACE),
    } | settings


async def submit(store: Store, *jobs: tuple[str, dict[str, Any]]) -> list[UUID]:
    runs = [
        NewRun(id=new_id(), task=task, queue="default", payload=json.dumps(payload) if payload else None)
        for task, payload in jobs
    ]
    await store.run_inserts.insert_runs(runs)
    store.hints.send(["default"])
    return [run.id for run in runs]


async def all_ended(sql: Any, runs: list[UUID]) -> bool:
    ended: int = await sql.fetchval("select count(*) from foliot.history where id = any ($1)", runs)
    return ended == len(runs)


async def all_end(sql: Any, runs: list[UUID], worker: FoliotProcess) -> None:
    try:
        await until(lambda: all_ended(sql, runs))
    except AssertionError:
        left = await sql.fetch("select task, state, attempt from foliot.runs where id = any ($1)", runs)
        told = [line[:600] for line in worker.lines[-30:]]
        pytest.fail("\n".join(["these never ended:", *(str(tuple(row)) for row in left), *told]))


async def stops(worker: FoliotProcess) -> None:
    worker.signal(signal.SIGTERM)
    await worker.wait(seconds=STOP_SECONDS)


async def test_hostile_tasks_end_and_harm_neither_other_jobs_nor_the_worker(
    database_url: str, store: Store, sql: Any
) -> None:
    environment = around(database_url)
    async with (
        FoliotProcess("scheduler", environment=environment),
        FoliotProcess("worker", APP, "--queue", "default=200", environment=environment) as worker,
    ):
        await worker.event("ProcessStarted", part="worker")
        kinds: list[tuple[str, dict[str, Any]]] = [("innocent", {}), ("innocent_thread", {})]
        innocent: list[UUID] = []
        hostile: list[UUID] = []
        for number, job in enumerate(HOSTILE):
            hostile += await submit(store, job)
            if number < INNOCENTS:
                innocent += await submit(store, kinds[number % 2])
        assert len(innocent) == INNOCENTS
        await all_end(sql, [*innocent, *hostile], worker)
        # Exactly once: no second attempt, nothing lost or failed.
        rows = await sql.fetch("select state, attempt, lost, token from foliot.history where id = any ($1)", innocent)
        assert {tuple(row) for row in rows} == {("succeeded", 1, 0, 1)}
        rows = await sql.fetch("select task, state, lost, error from foliot.history where id = any ($1)", hostile)
        assert {row["task"] for row in rows if row["state"] == "succeeded"} <= HARMLESS
        assert all(row["lost"] == 0 for row in rows)
        assert all(json.loads(row["error"])["kind"] for row in rows if row["state"] == "failed")
        # Afterwards the worker runs jobs and receives hints as before.
        after = await submit(store, *kinds)
        await until(lambda: all_ended(sql, after))
        await stops(worker)
    assert await sql.fetchval("select count(*) from foliot.runs") == 0


async def test_a_lowered_recursion_limit_is_restored(database_url: str, store: Store, sql: Any) -> None:
    environment = around(database_url)
    async with (
        FoliotProcess("scheduler", environment=environment),
        FoliotProcess("worker", APP, environment=environment) as worker,
    ):
        await worker.event("ProcessStarted", part="worker")
        await all_end(sql, await submit(store, ("lower_the_limit", {}), *[("innocent", {})] * 5), worker)
        # No hostile job changes its state from here on.
        runs = await submit(store, *[("innocent", {}), ("innocent_thread", {})] * 5)
        await all_end(sql, runs, worker)
        assert {row[0] for row in await sql.fetch("select state from foliot.history where id = any ($1)", runs)} == {
            "succeeded"
        }
        await stops(worker)


@pytest.mark.parametrize(
    "jobs",
    [
        [("swallow", {}), ("swallow_in_context", {})],
        [("sleep_in_a_thread", {}), ("sleep_in_the_pool", {})],
        [("mute", {}), ("mute_thread", {}), ("mute_transaction", {})],
        [("swallow_process", {}), ("mute_process", {})],
        [("block", {"seconds": 300})],
    ],
    ids=lambda jobs: jobs[0][0],
)
async def test_a_worker_stops_in_time_whatever_its_tasks_refuse(
    jobs: list[tuple[str, dict[str, Any]]], database_url: str, store: Store, sql: Any
) -> None:
    async with FoliotProcess("worker", APP, environment=around(database_url)) as worker:
        await worker.event("ProcessStarted", part="worker")
        runs = await submit(store, *jobs)
        await until(
            lambda: sql.fetchval("select count(*) > 0 from foliot.runs where state = 'running' and id = any ($1)", runs)
        )
        await stops(worker)
        assert not any(process.is_running() for process in worker.tree() if process.status() != psutil.STATUS_ZOMBIE)


async def test_a_blocked_loop_is_logged_with_its_place_and_loses_neither_the_lease_nor_the_run(
    database_url: str, store: Store, sql: Any
) -> None:
    environment = around(
        database_url, FOLIOT_WORKER_TTL_SECONDS="6", FOLIOT_WORKER_BEAT_SECONDS="1", FOLIOT_REAPER_SECONDS="0.5"
    )
    async with (
        FoliotProcess("scheduler", environment=environment),
        FoliotProcess("worker", APP, environment=environment) as worker,
    ):
        await worker.event("ProcessStarted", part="worker")
        runs = await submit(store, ("block", {"seconds": 12}))
        blocked = await worker.event("LoopBlocked")
        assert "apps.py" in blocked["where"]
        assert "block" in blocked["where"]
        await until(lambda: all_ended(sql, runs))
        assert tuple(await sql.fetchrow("select state, attempt, lost from foliot.history")) == ("succeeded", 1, 0)
        await stops(worker)


BROKEN = """
import asyncio, itertools
from foliot.events import EventBus
from foliot.worker import loop_watchdog

async def main():
    loop_watchdog.CHECK_SECONDS = 0.01
    numbers = {numbers}
    loop_watchdog.LoopWatchdog(events=EventBus(), unwritten=lambda: next(numbers), broken=lambda: {broken!r}).start()
    await asyncio.sleep({seconds})

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("numbers", "broken", "seconds", "status"),
    [
        ("itertools.repeat(7)", "", 60, 70),
        ("itertools.count()", "", 3, 0),
        ("itertools.repeat(None)", "", 3, 0),
        ("itertools.repeat(None)", "the Claimer has died", 60, 70),
    ],
    ids=["nothing is written", "something is", "nothing waits", "a part has died"],
)
async def test_a_broken_worker_exits_instead_of_holding_its_runs(
    numbers: str, broken: str, seconds: int, status: int
) -> None:
    program = BROKEN.format(numbers=numbers, broken=broken, seconds=seconds)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    assert process.returncode == status
    assert (b"this worker process is broken" in said) is (status == 70)
    assert broken.encode() in said


async def test_a_task_that_kills_its_worker_is_lost_and_its_output_is_kept(
    database_url: str, store: Store, sql: Any
) -> None:
    environment = around(
        database_url,
        FOLIOT_WORKER_TTL_SECONDS="3",
        FOLIOT_WORKER_BEAT_SECONDS="1",
        FOLIOT_REAPER_SECONDS="0.5",
        FOLIOT_LOST_ATTEMPTS_MAX="2",
    )
    async with FoliotProcess("scheduler", environment=environment):
        (run,) = await submit(store, ("vanish_with_the_worker", {}))
        for _ in range(2):
            async with FoliotProcess("worker", APP, environment=environment) as worker:
                assert await worker.wait(seconds=60) == 1
                began = time.monotonic()
                await until(lambda: sql.fetchval("select count(*) = 0 from foliot.runs where state = 'running'"))
                assert time.monotonic() - began < 60
        await until(lambda: all_ended(sql, [run]))
    row = await sql.fetchrow("select state, reason, lost, output from foliot.history where id = $1", run)
    assert tuple(row)[:3] == ("failed", "lost", 2)
    assert b"about to go" in row["output"]
    earlier = await sql.fetch("select outcome, output from foliot.attempts where run_id = $1", run)
    assert [row["outcome"] for row in earlier] == ["lost"]
    assert b"about to go" in earlier[0]["output"]
