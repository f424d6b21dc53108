"""Machines with wrong clocks: the database's clock decides, so nothing fires early, late, twice or never."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from foliot.model.ids import made_at
from foliot.store.store import Store
from tests.support.api import api_of
from tests.support.clocks import SteppingClock, faked
from tests.support.jobs import make_job
from tests.support.processes import FoliotProcess
from tests.support.ticks import assert_sound, fired_past
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

APP = "tests.cluster.apps:app"
LATE = timedelta(seconds=30)
"""Far less than the clocks are wrong by, and more than a busy machine needs."""


def wrong_by(database_url: str, shift: str) -> dict[str, str]:
    return faked(database_url, FAKETIME=shift)


async def test_clocks_that_are_an_hour_off_change_nothing(database_url: str, store: Store, sql: Any) -> None:
    async with (
        FoliotProcess("scheduler", environment=wrong_by(database_url, "+1h")) as ahead,
        FoliotProcess("scheduler", environment=wrong_by(database_url, "-1h")) as behind,
        FoliotProcess("worker", APP, environment=wrong_by(database_url, "-1h")) as worker,
        FoliotProcess("server", "--open", environment=wrong_by(database_url, "+1h")) as server,
        api_of(server, part="server") as api,
    ):
        await worker.event("ProcessStarted", part="worker")
        for scheduler in (ahead, behind):
            await scheduler.event("ShardsChanged", count=50)
        jobs = [await make_job(store, every="1s", task="noop", overlap="allow_all", catchup="all") for _ in range(20)]
        delayed = await api.submit(task="noop", delay_seconds=1.5)
        assert delayed["status"] == "scheduled"
        # The id contains the server's own time, which shows that its clock is wrong.
        assert abs(error_of(delayed) - timedelta(hours=1)) < timedelta(minutes=1)
        found = await api.ended(delayed["id"])
        assert found["scheduled_at"] <= found["started_at"] <= found["finished_at"]
        now = await store.jobs.database_now()
        await until(lambda: fired_past(sql, now + timedelta(seconds=4)))
        # Every due tick has become exactly one run, neither early nor late.
        for job in jobs:
            ticks = await store.ticks.list_ticks(job.id, 200)
            instants = [int(tick.tick_at.timestamp()) for tick in ticks]
            assert instants == list(range(instants[0], instants[-1] - 1, -1))
            assert len(instants) >= 4
        await until(lambda: sql.fetchval("select count(*) >= 20 * 4 from foliot.history where job_id is not null"))
        late = await sql.fetchval(
            "select max(extract(epoch from created_at - tick_at)) from foliot.history where job_id is not null"
        )
        early = await sql.fetchval(
            "select min(extract(epoch from created_at - tick_at)) from foliot.history where job_id is not null"
        )
        assert 0 <= early <= late < LATE.total_seconds()


def error_of(job: dict[str, Any]) -> timedelta:
    """The error of the server's clock when it accepted the job: the id contains its time, next to the time of the
    database."""
    return made_at(UUID(job["id"])) - datetime.fromisoformat(job["created_at"])


async def test_clocks_that_step_while_it_fires_change_nothing(
    database_url: str, store: Store, sql: Any, tmp_path: Path
) -> None:
    clock = SteppingClock(tmp_path)
    around = clock.of(database_url)
    async with (
        FoliotProcess("scheduler", environment=around) as scheduler,
        FoliotProcess("worker", APP, environment=around) as worker,
        FoliotProcess("server", "--open", environment=around) as server,
        api_of(server, part="server") as api,
    ):
        processes = (scheduler, worker)
        await worker.event("ProcessStarted", part="worker")
        await scheduler.event("ShardsChanged", count=100)
        for _ in range(20):
            await make_job(store, every="1s", task="noop", overlap="allow_all", catchup="all", catchup_max=10_000)
        delayed = []
        # An hour back, then two hours ahead, two hours back again, and finally right.
        for shift, hours in (("-1h", -1), ("+1h", 1), ("-1h", -1), ("+0", 0)):
            # One job is stored before the step and due after it, one is stored after it, and one runs while the clock
            # is wrong.
            delayed += [await api.submit(task="noop", delay_seconds=seconds) for seconds in (1.0, 5.0)]
            clock.set(shift)
            delayed += [await api.submit(task="noop", delay_seconds=seconds) for seconds in (0.5, 3.0)]
            assert abs(error_of(delayed[-1]) - timedelta(hours=hours)) < timedelta(minutes=1)
            stepped_at = await sql.fetchval("select clock_timestamp()")
            await until(lambda at=stepped_at: fired_past(sql, at + timedelta(seconds=4)))  # type: ignore[misc]
            # The clocks of all processes are wrong: their log lines show the same time.
            for process in processes:
                at = datetime.fromisoformat(process.events[-1]["at"])
                assert abs(at - stepped_at - timedelta(hours=hours)) < timedelta(minutes=10)
        for job in delayed:
            found = await api.ended(job["id"])
            assert found["status"] == "completed"
            late = datetime.fromisoformat(found["started_at"]) - datetime.fromisoformat(job["scheduled_at"])
            assert timedelta(0) <= late < LATE
        await until(lambda: sql.fetchval("select count(*) >= 20 * 16 from foliot.history where job_id is not null"))
        found_stories = await assert_sound(sql)
        lost = await sql.fetchval(
            "select count(*) from foliot.history where state <> 'succeeded' or lost > 0 or attempt > 1"
        )
    assert lost == 0
    assert all(not story.notes for story in found_stories)
    lates = [run.created_at.timestamp() - run.tick for story in found_stories for run in story.runs]
    assert 0 <= min(lates) <= max(lates) < LATE.total_seconds()
    assert not [
        event
        for process in processes
        for event in process.events
        if event["event"] in ("WorkerExpired", "ServiceFailed")
    ]
    # The scheduler does not keep retrying ticks that are not due yet.
    in_vain = [event for event in scheduler.events if event["event"] == "TicksFired" and not event["fired"]]
    assert len(in_vain) < 20
