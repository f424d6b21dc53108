"""`JobDefinition`, `JobScheduler` and `add_job`: an alternative interface to the same API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import foliot
from foliot.errors import Conflict, Invalid, UnknownTask
from foliot.sdk import job_scheduler
from foliot.store.store import Store

TASKS = {"send_invoice": "mail", "shell": "default"}


@pytest.fixture
async def scheduler(
    server_url: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[foliot.JobScheduler]:
    await store.workers.announce_tasks(TASKS)
    monkeypatch.setenv("FOLIOT_URL", server_url)
    scheduler = foliot.JobScheduler()
    yield scheduler
    scheduler.close()


def definition(**changes: Any) -> foliot.JobDefinition:
    fields: dict[str, Any] = {
        "job_id": "daily_report",
        "name": "Daily report",
        "schedule": "0 0 * * *",
        "command": "make report",
    }
    return foliot.JobDefinition(**fields | {"dependencies": []} | changes)


def test_a_definition_has_its_defaults() -> None:
    job = foliot.JobDefinition("a", "A", "* * * * *", "true", [])
    assert (job.max_retries, job.timeout_seconds, job.priority, job.metadata) == (3, 3600, 0, None)


async def test_a_cron_schedule_makes_a_recurring_job(scheduler: foliot.JobScheduler, store: Store) -> None:
    handle = await asyncio.to_thread(
        scheduler.create_job, definition(max_retries=5, priority=7, metadata={"team": "data"})
    )
    job = await store.jobs.get_job(None, "daily_report")
    assert job is not None
    assert (str(job.id), job.task, job.priority) == (handle.id, "shell", 7)
    assert bytes(job.payload) == b'{"command": "make report"}'
    assert job.schedule.cron == "0 0 * * *"
    assert job.options == {"retries": 5, "timeout_seconds": 3600, "metadata": {"name": "Daily report", "team": "data"}}
    assert await asyncio.to_thread(handle.status) == "active"
    with pytest.raises(Conflict, match="daily_report"):
        await asyncio.to_thread(scheduler.create_job, definition())


@pytest.mark.parametrize("schedule", ["2100-01-01T00:00:00Z", "2100-01-01T02:00:00+02:00", "2100-01-01"])
async def test_a_time_makes_a_job_that_runs_once(scheduler: foliot.JobScheduler, store: Store, schedule: str) -> None:
    handle = await asyncio.to_thread(scheduler.create_job, definition(schedule=schedule))
    assert await asyncio.to_thread(handle.status) == "scheduled"
    with pytest.raises(Conflict, match="daily_report"):
        await asyncio.to_thread(scheduler.create_job, definition(schedule=schedule))


async def test_a_task_may_be_the_command(scheduler: foliot.JobScheduler, store: Store) -> None:
    app = foliot.App()

    @app.task
    def send_invoice() -> None: ...

    await asyncio.to_thread(scheduler.create_job, definition(command=send_invoice))
    job = await store.jobs.get_job(None, "daily_report")
    assert job is not None
    assert (job.task, job.queue) == ("send_invoice", "mail")


REFUSED = [
    "*/90 * * * *",
    "@every soon",
    "CRON_TZ=Mars/Olympus 0 0 * * *",
    "0 0 0 1 1 ? 2020",
    "1," * 50_000 + "1 * * * *",
]
KNOWN = [
    "@every 5m",
    "rate(1 hour)",
    "CRON_TZ=Europe/Berlin 0 9 * * FRI-MON",
    "cron(0 9 ? * 2-6 *)",
    "0 0 13 * +FRI",
    "0 0 0 1 1 ? 2150",
]


@pytest.mark.parametrize(
    "schedule", ["", "every day", "61 * * * *", "* * * *", "0 0 31 2 *", "2026-13-01T00:00:00Z", "@reboot", *REFUSED]
)
def test_an_invalid_schedule_is_refused_without_a_request(schedule: str) -> None:
    scheduler = foliot.JobScheduler("http://127.0.0.1:1")
    assert not scheduler.validate_cron(schedule)
    with pytest.raises(foliot.InvalidScheduleError, match="schedule: ") as refused:
        scheduler.create_job(definition(schedule=schedule))
    assert (refused.value.field, isinstance(refused.value, Invalid)) == ("schedule", True)


@pytest.mark.parametrize(
    "schedule", ["*/5 * * * *", "@daily", "0 0 9 * * MON-FRI", "2026-12-31T23:59:59Z", "2026-12-31 23:59", *KNOWN]
)
def test_every_form_of_schedule_is_recognized(schedule: str) -> None:
    assert foliot.JobScheduler().validate_cron(schedule)


async def test_a_zone_or_period_in_a_schedule_becomes_a_field(
    scheduler: foliot.JobScheduler,
) -> None:
    for schedule, cron, every, zone in (
        ("CRON_TZ=Asia/Tokyo 0 9 * * *", "0 9 * * *", None, "Asia/Tokyo"),
        ("@every 90m", None, "90m", "UTC"),
    ):
        handle = await asyncio.to_thread(scheduler.create_job, definition(job_id=f"job {zone[:3]}", schedule=schedule))
        found = (await asyncio.to_thread(scheduler._server.client().get_job, handle.id)).document["schedule"]
        assert (found.get("cron"), found.get("every"), found.get("timezone", "UTC")) == (cron, every, zone)


def test_a_time_without_an_offset_is_in_the_zone_of_this_machine() -> None:
    moment = job_scheduler.time_of("2026-07-01T12:00:00")
    assert moment == datetime(2026, 7, 1, 12).astimezone()
    assert moment.tzinfo is not None


@pytest.mark.parametrize("time", [datetime(2100, 1, 1, tzinfo=UTC), "2100-01-01T00:00:00Z"], ids=["datetime", "text"])
async def test_add_job_accepts_an_instant(scheduler: foliot.JobScheduler, store: Store, time: datetime | str) -> None:
    handle = await asyncio.to_thread(foliot.add_job, "send_invoice", time, {"customer_id": 7})
    assert await asyncio.to_thread(handle.status) == "scheduled"
    job = (await asyncio.to_thread(scheduler._server.client().get_job, handle.id)).document
    assert (job["task"], job["payload"], job["scheduled_at"]) == (
        "send_invoice",
        {"customer_id": 7},
        "2100-01-01T00:00:00Z",
    )
    await asyncio.to_thread(job_scheduler._default.close)


@pytest.mark.parametrize(
    ("time", "status"),
    [(None, "pending"), (timedelta(0), "pending"), (timedelta(hours=1), "scheduled")],
    ids=["now", "0", "1h"],
)
async def test_add_job_accepts_a_delay(scheduler: foliot.JobScheduler, time: timedelta | None, status: str) -> None:
    handle = await asyncio.to_thread(scheduler.add_job, "send_invoice", time)
    assert await asyncio.to_thread(handle.status) == status


async def test_add_job_refuses_unsupported_options(scheduler: foliot.JobScheduler) -> None:
    with pytest.raises(UnknownTask):
        await asyncio.to_thread(scheduler.add_job, "nobody_knows_it")
    with pytest.raises(foliot.InvalidScheduleError, match="use create_job"):
        scheduler.add_job("send_invoice", "* * * * *")
    with pytest.raises(Invalid, match="has no time zone"):
        scheduler.add_job("send_invoice", datetime(2100, 1, 1))  # noqa: DTZ001
