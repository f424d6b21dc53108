"""`foliot up` as a user runs it: real processes, real signals."""

from __future__ import annotations

import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.embedded import find_url
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.store.store import open_store
from tests.support.api import api_of
from tests.support.processes import FoliotProcess, foliot_up, is_alive
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

# Dead workers are noticed sooner than by default, to keep the tests short.
QUICK = {"FOLIOT_WORKER_TTL_SECONDS": "6", "FOLIOT_WORKER_BEAT_SECONDS": "1", "FOLIOT_REAPER_SECONDS": "0.2"}
APP = "tests.cluster.apps:app"


@asynccontextmanager
async def sql_of(data: Path) -> AsyncIterator[Any]:
    """A plain connection to the embedded server of another process."""
    url = find_url(data)
    assert url is not None
    session = await asyncpg.connect(url)
    try:
        yield session
    finally:
        await session.close()


async def all_gone(processes: list[psutil.Process]) -> None:
    async def look() -> bool:
        return not any(is_alive(process) for process in processes)

    await until(look)


async def test_jobs_of_every_kind_run_end_to_end(tmp_path: Path) -> None:
    async with foliot_up(tmp_path, "--app", APP, environment=QUICK) as up, api_of(up) as api:
        shell = await api.submit(command="echo out; echo err >&2; exit 3", retries=0, name="a shell job")
        python = await api.submit(task="greet", payload={"name": "you"})
        delayed = await api.submit(task="simulate", payload={"execution_time_ms": 10}, delay_seconds=0.5)
        flaky = await api.submit(
            job_type="simulate", payload={"fail_rate": 1}, max_retries=1, backoff={"base_seconds": 0.1}
        )
        job = await api.ended(shell["id"])
        assert (job["status"], job["error"]["message"], job["output"], job["name"]) == (
            "failed",
            "exit code 3",
            "out\nerr\n",
            "a shell job",
        )
        job = await api.ended(python["id"])
        assert (job["status"], job["result"], job["queue"]) == ("completed", "hello you", "mail")
        assert delayed["status"] == "scheduled"
        job = await api.ended(delayed["id"])
        assert job["status"] == "completed"
        assert job["started_at"] >= delayed["scheduled_at"]
        job = await api.ended(flaky["id"])
        assert (job["status"], job["attempt"], job["error"]["kind"]) == ("failed", 2, "SimulatedFailure")
        assert (await api.client.get("/readyz")).json() == {"status": "ready"}
        answer = await api.client.post("/v1/jobs", json={"task": "gret"})
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "unknown_task", "task")


async def test_ctrl_c_lets_jobs_end_and_leaves_nothing_running(tmp_path: Path) -> None:
    async with foliot_up(tmp_path, "--app", APP) as up, api_of(up) as api:
        job = await api.submit(task="linger", payload={"seconds": 1})
        await api.status(job["id"], "running")
        tree = up.tree()
        up.signal(signal.SIGINT)
        assert await up.wait() == 0
        await all_gone(tree)
    async with foliot_up(tmp_path) as up, api_of(up) as api:
        assert (await api.get(job["id"]))["status"] == "completed"


async def test_a_second_ctrl_c_stops_at_once_and_releases_the_job(tmp_path: Path) -> None:
    async with foliot_up(tmp_path) as up, api_of(up) as api:
        job = await api.submit(command="sleep 60")
        await api.status(job["id"], "running")
        tree = up.tree()
        up.signal(signal.SIGINT)
        await up.event("ProcessStopping", part="up")
        up.signal(signal.SIGINT)
        # Less than the grace period for running jobs.
        assert await up.wait(seconds=Config().grace_seconds - 5) == 0
        await all_gone(tree)
    async with foliot_up(tmp_path, "--workers", "0") as up, api_of(up) as api:
        found = await api.get(job["id"])
        assert (found["state"], found["attempt"]) == ("ready", 0)


async def test_ten_thousand_jobs_survive_sigkill_of_everything_and_each_ends_once(tmp_path: Path) -> None:
    count = 10_000
    async with foliot_up(tmp_path, "--app", APP, environment=QUICK) as up, api_of(up):
        url = find_url(tmp_path)
        assert url is not None
        async with open_store(url, config=Config(), clock=SystemClock(), events=EventBus(), part="test") as store:
            payload = '{"execution_time_ms": 5}'
            runs = [NewRun(id=new_id(), task="simulate", queue="default", payload=payload) for _ in range(count)]
            for start in range(0, count, 1000):
                await store.run_inserts.insert_runs(runs[start : start + 1000])
        async with sql_of(tmp_path) as sql:
            await until(lambda: sql.fetchval("select count(*) > 500 from foliot.history"))
            assert await sql.fetchval("select count(*) from foliot.runs") > 0
        tree = up.tree()
        up.kill_tree()
        await all_gone(tree)
    async with foliot_up(tmp_path, environment=QUICK) as up, api_of(up), sql_of(tmp_path) as sql:
        await until(lambda: sql.fetchval("select not exists (select from foliot.runs)"))
        counted = await sql.fetchrow(
            "select count(*), count(distinct id), count(*) filter (where state = 'succeeded') from foliot.history"
        )
        assert tuple(counted) == (count, count, count)
        ids = {row[0] for row in await sql.fetch("select id from foliot.history")}
        assert ids == {run.id for run in runs}


async def test_a_killed_worker_is_replaced_and_its_job_runs_again(tmp_path: Path) -> None:
    async with foliot_up(tmp_path, "--app", APP, "--workers", "1", environment=QUICK) as up, api_of(up) as api:
        job = await api.submit(task="linger", payload={"seconds": 2})
        await api.status(job["id"], "running")
        worker = (await up.event("ChildStarted", name="worker-1"))["pid"]
        psutil.Process(worker).kill()
        await up.event("ChildDied", name="worker-1")
        found = await api.ended(job["id"])
        # At least: on a busy machine the short lease of the second worker may expire, too.
        assert found["status"] == "completed"
        assert found["attempt"] >= 2
        assert found["result"] != worker


async def test_a_killed_api_is_replaced_and_no_connection_is_refused(tmp_path: Path) -> None:
    async with foliot_up(tmp_path) as up, api_of(up) as api:
        psutil.Process((await up.event("ChildStarted", name="server"))["pid"]).kill()
        answer = await api.client.get("/healthz")
        assert answer.status_code == 200


async def test_a_killed_postgres_is_replaced_and_work_continues(tmp_path: Path) -> None:
    # PostgreSQL may need this long to restart on a busy machine.
    async with (
        foliot_up(tmp_path, environment=QUICK | {"FOLIOT_DATABASE_RETRY_SECONDS": "60"}) as up,
        api_of(up) as api,
    ):
        postmaster = int((tmp_path / "postgres" / "postmaster.pid").read_text().split()[0])
        psutil.Process(postmaster).kill()
        await up.event("ChildDied", name="postgres")
        job = await api.submit(command="echo back")
        assert (await api.ended(job["id"]))["output"] == "back\n"


async def test_when_foliot_up_is_killed_its_children_and_postgres_go_too(tmp_path: Path) -> None:
    async with foliot_up(tmp_path) as up, api_of(up):
        tree = up.tree()
        assert len(tree) > 5
        up.signal(signal.SIGKILL)
        await all_gone(tree)


async def test_a_second_foliot_up_on_the_same_directory_is_refused_with_one_line(tmp_path: Path) -> None:
    async with foliot_up(tmp_path) as up:
        await up.event("ProcessStarted", part="up")
        async with foliot_up(tmp_path) as second:
            assert await second.wait() == 1
            assert len(second.lines) == 1
            assert f"in use by process {up.pid}" in second.lines[0]


async def test_other_processes_share_the_embedded_server(tmp_path: Path) -> None:
    async with (
        foliot_up(tmp_path, "--workers", "0") as up,
        api_of(up) as api,
        FoliotProcess("worker", APP, "--data", str(tmp_path)) as worker,
    ):
        await worker.event("ProcessStarted", part="worker")
        job = await api.submit(task="greet", payload={"name": "guest"})
        assert (await api.ended(job["id"]))["result"] == "hello guest"
        worker.signal(signal.SIGTERM)
        assert await worker.wait() == 0


async def test_the_second_start_is_quick(tmp_path: Path) -> None:
    """A second or two on a quiet machine: less than the first start, which creates a database. On a busy machine all
    starts take longer, so the quickest later one counts."""
    took = []
    for _ in range(3):
        began = time.monotonic()
        async with foliot_up(tmp_path) as up:
            await up.event("ProcessStarted", part="up")
            took.append(time.monotonic() - began)
            up.signal(signal.SIGINT)
            await up.wait()
    first, *later = took
    assert min(later) < 2 * first
