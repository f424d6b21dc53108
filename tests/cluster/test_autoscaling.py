"""`foliot up --workers 1:2` as a user runs it: the pool grows for waiting runs, and gives workers up without harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.api import Api, api_of
from tests.support.processes import FoliotProcess, foliot_up, is_alive
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

SHRINKS_SOON = {"FOLIOT_SLOTS": "2", "FOLIOT_WORKERS_SHRINK_SECONDS": "2"}


async def runs_of(api: Api, pid: int) -> list[str]:
    """The ids of what the worker with this process id runs now."""
    workers = (await api.client.get("/v1/workers", params={"runs": 1})).json()["items"]
    return [run["id"] for worker in workers if worker["name"].endswith(f":{pid}") for run in worker["runs"]]


async def slots_wanted(api: Api) -> Any:
    return (await api.client.get("/v1/scaling", params={"queue": "default"})).json()["slots_wanted"]


async def pid_of(up: FoliotProcess, name: str) -> int:
    pid: int = (await up.event("ChildStarted", name=name))["pid"]
    return pid


async def test_the_pool_grows_for_waiting_runs_and_a_worker_that_it_gives_up_ends_its_run_first(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with foliot_up(tmp_path / "data", "--workers", "1:2", environment=SHRINKS_SOON) as up, api_of(up) as api:
        jobs = [await api.submit(command=f"until [ -e {gate} ]; do sleep 0.1; done") for _ in range(4)]
        await up.event("WorkersScaled", before=1, after=2)
        for job in jobs:
            await api.status(job["id"], "running")
        first, second = await pid_of(up, "worker-1"), await pid_of(up, "worker-2")
        kept, *others = await runs_of(api, second)
        for run in (*await runs_of(api, first), *others):
            assert (await api.client.post(f"/v1/runs/{run}/cancel")).is_success
            await api.ended(run)
        await up.event("WorkersScaled", before=2, after=1)
        # The worker that goes is the one with the run: it takes no other, and finishes this one.
        later = [await api.submit(command="echo later") for _ in range(4)]
        for job in later:
            assert (await api.ended(job["id"]))["output"] == "later\n"
        assert await runs_of(api, second) == [kept]
        gate.touch()
        ended = await api.ended(kept)
        assert (ended["status"], ended["attempt"]) == ("completed", 1)

        async def second_is_gone() -> bool:
            return not psutil.pid_exists(second) or not is_alive(psutil.Process(second))

        await until(second_is_gone)
        assert not [event for event in up.events if event["event"] == "ChildDied"]
        assert await slots_wanted(api) == 0


async def test_a_range_that_is_none_is_refused(tmp_path: Path) -> None:
    for given in ("8:2", "two", "1:999", "0:0"):
        async with foliot_up(tmp_path, "--workers", given) as up:
            assert await up.wait() == 2
            assert len(up.lines) == 1
            assert f"workers is '{given}', but must be a number from 0 to 256" in up.lines[0]
