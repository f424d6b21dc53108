"""Workers that die, freeze and block while they work: every job ends once, with the right result."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest

from foliot.config import Config
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.store.hints import worker_topic
from foliot.store.store import Store
from tests.support.processes import FoliotProcess
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

APP = "tests.cluster.apps:app"
# No other process sleeps for exactly this long.
LONG = f"300.{os.getpid()}"
DEBITS = int(os.environ.get("TRANSACTIONAL_DEBITS", "3000"))


def around(database_url: str, **settings: str) -> dict[str, str]:
    return {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_LOG_LEVEL": "info"} | settings


async def submit(
    store: Store, task: str, number: int, payload: str | None = None, queue: str = "default"
) -> list[NewRun]:
    runs = [NewRun(id=new_id(), task=task, queue=queue, payload=payload) for _ in range(number)]
    await store.run_inserts.insert_runs(runs)
    store.hints.send([queue])
    return runs


async def running(sql: Any, worker: str = "") -> int:
    found: int = await sql.fetchval(
        "select count(*) from foliot.runs where state = 'running' and worker_id::text <> $1", worker
    )
    return found


async def test_the_jobs_of_a_killed_worker_run_elsewhere_within_twenty_seconds(
    database_url: str, store: Store, sql: Any
) -> None:
    environment = around(database_url)
    async with (
        FoliotProcess("scheduler", environment=environment),
        FoliotProcess("worker", APP, "--queue", "default=50", environment=environment) as victim,
    ):
        worker = (await victim.event("WorkerRegistered"))["worker_id"]
        await submit(store, "shell", 50, '{"command": "sleep 60"}')
        await until(lambda: sql.fetchval("select count(*) = 50 from foliot.runs where state = 'running'"))
        async with FoliotProcess("worker", APP, "--queue", "default=100", environment=environment) as heir:
            await heir.event("ProcessStarted", part="worker")
            victim.kill_tree()
            gone_at = await sql.fetchval("select clock_timestamp()")
            lease_end = await sql.fetchval("select expires_at from foliot.workers where id = $1", UUID(worker))
            assert lease_end - gone_at <= timedelta(seconds=Config().worker_ttl_seconds)
            await until(lambda: _all_running_elsewhere(sql, worker))
            late = await sql.fetchval("select max(started_at) - $1 from foliot.runs", lease_end)
            # Two seconds to find dead workers, one to poll for work, and some for a busy machine.
            assert timedelta(0) < late < timedelta(seconds=20)
            rows = await sql.fetch("select attempt, lost, token from foliot.runs")
            assert {tuple(row) for row in rows} == {(2, 1, 2)}
            assert await sql.fetchval("select count(*) from foliot.attempts where outcome = 'lost'") == 50
            assert await sql.fetchval("select count(*) from foliot.history") == 0


async def _all_running_elsewhere(sql: Any, worker: str) -> bool:
    return await running(sql, worker) == 50


async def test_a_worker_that_was_frozen_past_its_lease_changes_nothing_when_it_comes_back(
    database_url: str, store: Store, sql: Any, tmp_path: Path
) -> None:
    environment = around(database_url)
    journal = tmp_path / "journal"
    # The first attempt writes and waits; later ones write and end.
    command = f"echo here >> {journal}; if [ $(wc -l < {journal}) = 1 ]; then exec sleep {LONG}; fi"
    async with (
        FoliotProcess("scheduler", environment=environment),
        FoliotProcess("worker", APP, environment=environment) as frozen,
    ):
        await frozen.event("WorkerRegistered")
        (run,) = await submit(store, "shell", 1, f'{{"command": "{command}"}}')
        await until(lambda: _lines(journal, 1))
        await until(_is_asleep)
        frozen.signal(signal.SIGSTOP)
        async with FoliotProcess("worker", APP, environment=environment) as other:
            await other.event("ProcessStarted", part="worker")
            await until(lambda: sql.fetchval("select count(*) = 1 from foliot.history"))
            frozen.signal(signal.SIGCONT)
            await frozen.event("WorkerExpired")
            await until(_is_gone)
            # The worker has started over and runs jobs again.
            await other.event("ProcessStarted", part="worker")
            await until(
                lambda: sql.fetchval("select count(*) = 2 from foliot.workers where expires_at > clock_timestamp()")
            )
        row = await sql.fetchrow("select id, state, attempt, lost from foliot.history")
        assert tuple(row) == (run.id, "succeeded", 2, 1)
        assert len(journal.read_text().split()) == 2


async def _lines(path: Path, number: int) -> bool:
    return path.exists() and len(path.read_text().split()) >= number


async def _is_asleep() -> bool:
    """Found by its command line, because inside a namespace it does not know its real process id."""
    return any(
        process.info["cmdline"] and process.info["cmdline"][-1] == LONG for process in psutil.process_iter(["cmdline"])
    )


async def _is_gone() -> bool:
    return not await _is_asleep()


async def test_blocking_functions_in_every_slot_stop_neither_heartbeats_nor_cancels_nor_other_queues(
    database_url: str, store: Store, sql: Any
) -> None:
    environment = around(database_url, FOLIOT_WORKER_TTL_SECONDS="6", FOLIOT_WORKER_BEAT_SECONDS="1")
    async with FoliotProcess(
        "worker", APP, "--queue", "default=4", "--queue", "mail=1", environment=environment
    ) as worker:
        await worker.event("ProcessStarted", part="worker")
        blocked = await submit(store, "linger", 4, '{"seconds": 300}')
        await until(lambda: sql.fetchval("select count(*) = 4 from foliot.runs where state = 'running'"))
        await asyncio.sleep(8)
        await submit(store, "greet", 1, '{"name": "you"}', queue="mail")
        await until(lambda: sql.fetchval("select count(*) = 1 from foliot.history where task = 'greet'"))
        marked = await store.cancellation.mark_cancelled([blocked[0].id], "enough", is_forced=False)
        store.hints.send(worker_topic(holder) for holder in marked.values() if holder)
        await until(
            lambda: sql.fetchval("select count(*) = 1 from foliot.history where state = 'cancelled'"), seconds=30
        )
        assert not [event for event in worker.events if event["event"] == "WorkerExpired"]


@pytest.mark.slow
async def test_a_transactional_account_stays_exact_while_workers_are_killed(
    database_url: str, store: Store, sql: Any
) -> None:
    environment = around(
        database_url, FOLIOT_WORKER_TTL_SECONDS="6", FOLIOT_WORKER_BEAT_SECONDS="1", FOLIOT_LOST_ATTEMPTS_MAX="100"
    )
    await sql.execute("create table account (id bigint primary key, balance bigint not null)")
    await sql.execute("insert into account select n, 1000000 from generate_series(0, 7) n")
    chance = random.Random(11)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(FoliotProcess("scheduler", environment=environment))
        workers = [
            await stack.enter_async_context(FoliotProcess("worker", APP, environment=environment)) for _ in range(2)
        ]
        for worker in workers:
            await worker.event("ProcessStarted", part="worker")
        await submit(store, "debit", DEBITS, '{"amount": 7}')
        while await sql.fetchval("select exists (select from foliot.runs where state <> 'running')"):
            victim = chance.randrange(2)
            # Kill a worker only once it holds runs. Otherwise, where starts are slow, no job would ever run.
            worker_id = (await workers[victim].event("WorkerRegistered"))["worker_id"]
            await until(partial(has_work_or_there_is_none, sql, worker_id))
            await asyncio.sleep(chance.uniform(0, 0.7))
            workers[victim].kill_tree()
            workers[victim] = await stack.enter_async_context(FoliotProcess("worker", APP, environment=environment))
        await until(lambda: sql.fetchval("select count(*) = 0 from foliot.runs"))
    assert await sql.fetchval("select count(*) from foliot.history where state = 'succeeded'") == DEBITS
    assert await sql.fetchval("select count(distinct id) from foliot.history") == DEBITS
    assert await sql.fetchval("select sum(balance)::bigint from account") == 8_000_000 - 7 * DEBITS
    assert await sql.fetchval("select count(*) from foliot.attempts where outcome = 'lost'") > 0, "nobody died at work"


async def has_work_or_there_is_none(sql: Any, worker_id: str) -> bool:
    holds = await sql.fetchval("select exists (select from foliot.runs where worker_id = $1)", UUID(worker_id))
    return holds or not await sql.fetchval("select exists (select from foliot.runs where state <> 'running')")


async def test_a_worker_that_waits_or_watches_a_long_run_uses_little_cpu(
    database_url: str, store: Store, sql: Any
) -> None:
    async with FoliotProcess("worker", APP, environment=around(database_url)) as worker:
        await worker.event("ProcessStarted", part="worker")
        await submit(store, "linger", 5, '{"seconds": 60}')
        await until(lambda: sql.fetchval("select count(*) = 5 from foliot.runs where state = 'running'"))
        process = psutil.Process(worker.pid)
        before = process.cpu_times()
        await asyncio.sleep(10)
        after = process.cpu_times()
        assert (after.user + after.system) - (before.user + before.system) < 0.2, (
            "two per cent of one core; one where it is quiet"
        )
        assert process.memory_info().rss < 80 << 20
