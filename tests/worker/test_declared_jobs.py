"""Recurring jobs declared in the code of an app: created once, changed with the code, and otherwise left alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import foliot
from foliot.errors import Invalid
from foliot.events import Event, JobDeclared, JobNotDeclared
from foliot.model.job import RecurringJob
from foliot.model.namespace import Namespace
from foliot.store.store import Store
from foliot.submission.declared_jobs import declare_jobs
from foliot.worker.declared_jobs import jobs_of
from tests.support.jobs import make_job
from tests.support.workers import worker_node


def app_with(**options: Any) -> foliot.App:
    app = foliot.App()

    def nightly(ctx: Any, days: int = 1) -> None: ...

    app.task(**options)(nightly)
    return app


async def job_of(store: Store) -> RecurringJob:
    job = await store.jobs.get_job(None, "nightly")
    assert job is not None
    return job


async def test_a_starting_worker_creates_the_job_once(store: Store, seen: list[Event], sql: Any) -> None:
    app = app_with(cron="0 3 * * *", timezone="Europe/Berlin", overlap="buffer_one", queue="slow")
    for _ in range(2):
        async with worker_node(store, app):
            pass
    job = await job_of(store)
    assert (job.task, job.queue, job.version) == ("nightly", "slow", 1)
    assert (job.schedule.cron, job.schedule.timezone, job.schedule.overlap) == (
        "0 3 * * *",
        "Europe/Berlin",
        "buffer_one",
    )
    assert job.fire_at is not None
    assert [event for event in seen if isinstance(event, JobDeclared)] == [JobDeclared("nightly", is_new=True)]


@pytest.mark.parametrize(
    ("given", "cron", "every"),
    [("CRON_TZ=Asia/Tokyo 0 9 * * FRI-MON", "0 9 * * FRI-MON", None), ("TZ=Asia/Tokyo @every 1d", None, "1d")],
)
async def test_a_zone_or_a_period_in_the_expression_becomes_a_field_and_stays_so(
    store: Store, given: str, cron: str | None, every: str | None
) -> None:
    for _ in range(2):
        await declare_jobs(jobs_of(app_with(cron=given)), store=store, events=store.events, namespace=Namespace())
    job = await job_of(store)
    assert (job.schedule.cron, job.schedule.every, job.schedule.timezone, job.version) == (cron, every, "Asia/Tokyo", 1)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"cron": "*/90 * * * *"}, "use every: 90m"),
        ({"cron": "CRON_TZ=Asia/Tokyo 0 9 * * *", "timezone": "UTC"}, "leave one of them out"),
        ({"cron": ["@every 5m", "0 9 * * *"]}, "a period can't stand beside other expressions"),
    ],
)
def test_a_misleading_expression_is_refused_at_the_decorator(options: dict[str, Any], why: str) -> None:
    with pytest.raises(Invalid, match=why):
        app_with(**options)


async def test_many_starting_workers_create_one_job_and_change_it_once(store: Store, sql: Any) -> None:
    for cron in ("0 3 * * *", "0 4 * * *"):
        await asyncio.gather(
            *(
                declare_jobs(jobs_of(app_with(cron=cron)), store=store, events=store.events, namespace=Namespace())
                for _ in range(8)
            )
        )
    assert await sql.fetchval("select count(*) from foliot.jobs") == 1
    job = await job_of(store)
    assert (job.schedule.cron, job.version) == ("0 4 * * *", 2)


async def test_the_code_sets_schedule_and_queue_and_keeps_other_fields(store: Store, sql: Any) -> None:
    await declare_jobs(jobs_of(app_with(cron="0 3 * * *")), store=store, events=store.events, namespace=Namespace())
    before = await job_of(store)
    await sql.execute("""update foliot.jobs set priority = 7, payload = '{"days": 2}', options = '{"retries": 9}'""")
    await store.jobs.pause_job(before.id, "holidays", None)
    await declare_jobs(
        jobs_of(app_with(every="2h", queue="slow")), store=store, events=store.events, namespace=Namespace()
    )
    job = await job_of(store)
    assert (job.id, job.schedule.cron, job.schedule.every, job.queue) == (before.id, None, "2h", "slow")
    assert (job.priority, job.options, job.paused_reason, job.fire_at) == (7, {"retries": 9}, "holidays", None)


async def test_a_schedule_removed_from_the_code_leaves_its_job_alone(store: Store) -> None:
    await declare_jobs(jobs_of(app_with(cron="0 3 * * *")), store=store, events=store.events, namespace=Namespace())
    before = await job_of(store)
    await declare_jobs(jobs_of(app_with()), store=store, events=store.events, namespace=Namespace())
    assert await job_of(store) == before


async def test_a_job_of_the_same_name_for_another_task_is_not_touched(store: Store, seen: list[Event]) -> None:
    await make_job(store, name="nightly", task="other", cron="0 5 * * *")
    before = await job_of(store)
    await declare_jobs(jobs_of(app_with(cron="0 3 * * *")), store=store, events=store.events, namespace=Namespace())
    assert await job_of(store) == before
    assert [event.why for event in seen if isinstance(event, JobNotDeclared)] == [
        "a job of that name exists for the task 'other'"
    ]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"cron": "0 24 * * *"}, "hour: 24"),
        ({"cron": "0 3 * * *", "timezone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"cron": "0 3 * * *", "overlap": "sometimes"}, "overlap"),
        ({"cron": "0 3 * * *", "every": "5m"}, "either cron or every"),
        ({"timezone": "UTC"}, "either cron or every"),
        ({"every": "soon"}, "soon"),
    ],
)
def test_an_invalid_schedule_is_refused_at_the_decorator(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(Invalid, match=complaint) as raised:
        app_with(**given)
    assert "'nightly'" in raised.value.detail


def test_a_misspelled_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="there is no option 'retires', did you mean 'retries'"):
        app_with(retires=5)


def test_a_task_with_required_arguments_can_have_no_schedule() -> None:
    with pytest.raises(Invalid, match="'customer_id' of a scheduled task must have a default"):
        foliot.App().task(every="1h")(lambda customer_id: None)
