"""Machines whose clocks are wrong: the database's clock decides, so nothing fires early, late, twice or never."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from foliot.model.ids import made_at
from foliot.store.store import Store
from tests.support.api import api_of
from tests.support.debian import require
from tests.support.jobs import make_job
from tests.support.processes import FoliotProcess
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

APP = "tests.cluster.apps:app"


def faked(database_url: str, shift: str) -> dict[str, str]:
    """A process whose clock is wrong by so much; its monotonic clock is right, as it would be."""
    require("faketime", "faketime")
    (library,) = list(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))[:1]
    return {
        "FOLIOT_DATABASE_URL": database_url,
        "FOLIOT_PORT": "0",
        "LD_PRELOAD": str(library),
        "FAKETIME": shift,
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


async def test_clocks_that_are_an_hour_off_change_nothing(database_url: str, store: Store, sql: Any) -> None:
    async with (
        FoliotProcess("scheduler", environment=faked(database_url, "+1h")) as ahead,
        FoliotProcess("scheduler", environment=faked(database_url, "-1h")) as behind,
        FoliotProcess("worker", APP, environment=faked(database_url, "-1h")) as worker,
        FoliotProcess("server", environment=faked(database_url, "+1h")) as server,
        api_of(server, part="server") as api,
    ):
        await worker.event("ProcessStarted", part="worker")
        for scheduler in (ahead, behind):
            await scheduler.event("ShardsChanged", count=50)
        jobs = [await make_job(store, every="1s", task="noop", overlap="allow_all") for _ in range(20)]
        delayed = await api.submit(task="noop", delay_seconds=1.5)
        assert delayed["status"] == "scheduled"
        # The id holds the server's own time: its clock is wrong indeed.
        wrong_by = made_at(UUID(delayed["id"])) - datetime.fromisoformat(delayed["created_at"])
        assert timedelta(minutes=59) < wrong_by < timedelta(minutes=61)
        found = await api.ended(delayed["id"])
        assert found["scheduled_at"] <= found["started_at"] <= found["finished_at"]
        await asyncio.sleep(4)
        # Everything that was due has become a run, none more than once, none before its instant, none late.
        for job in jobs:
            ticks = await store.jobs.list_ticks(job.id, 200)
            instants = [int(tick.tick_at.timestamp()) for tick in ticks]
            assert instants == list(range(instants[0], instants[-1] - 1, -1))
            assert len(instants) >= 4
        await until(lambda: sql.fetchval("select count(*) >= 20 * 4 from foliot.history where job_id is not null"))
        late = await sql.fetchval("select max(extract(epoch from created_at - tick_at)) from foliot.history where job_id is not null")
        early = await sql.fetchval("select min(extract(epoch from created_at - tick_at)) from foliot.history where job_id is not null")
        assert 0 <= early <= late < 2
