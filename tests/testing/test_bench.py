"""`foliot.testing`: runs tasks in process by the rules of a worker, with a clock that tests move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import foliot
from foliot.errors import Conflict, Invalid, NotFound, UnknownTask
from foliot.sdk.default_connection import Server
from foliot.testing import Bench, inline

app = foliot.App()
calls: list[Any] = []


@app.task(queue="mail")
async def send(customer: int) -> str:
    calls.append(customer)
    return f"sent to {customer}"


@app.task
def add(a: int, b: int = 1) -> dict[str, int]:
    return {"sum": a + b}


@app.task(retries=2, backoff=foliot.Backoff(kind="fixed", base_seconds=10, jitter=0))
def flaky(ctx: foliot.Context, until: int = 3) -> int:
    ctx.logger.info("attempt %d", ctx.attempt)
    if ctx.attempt < until:
        raise ValueError("not yet")
    return ctx.attempt


@app.task(max_snoozes=2)
def sleepy(ctx: foliot.Context, times: int = 1) -> int:
    calls.append(ctx.token)
    if len(calls) <= times:
        raise foliot.Snooze(60)
    return ctx.attempt


@app.task(every="1h")
def hourly() -> None:
    calls.append("tick")


@app.task(
    cron="30 * * * *",
    timezone="Europe/Berlin",
    retries=9,
    backoff=foliot.Backoff(kind="fixed", base_seconds=3000, jitter=0),
)
def stubborn() -> None:
    raise ValueError


@pytest.fixture(autouse=True)
def fresh() -> None:
    calls.clear()


@pytest.fixture
def bench() -> Any:
    with inline(app) as bench:
        yield bench


def test_a_submitted_job_runs_when_the_bench_runs(bench: Bench) -> None:
    job = send.submit(customer=7)
    assert (job.status(), calls) == ("pending", [])
    assert bench.run() == 1
    assert (job.status(), calls, job.result(), job.is_new) == ("completed", [7], "sent to 7", True)
    assert bench.run() == 0


def test_reading_a_result_runs_due_jobs(bench: Bench) -> None:
    assert add.submit(a=1).result() == {"sum": 2}
    assert [handle.result() for handle in add.submit_many([{"a": 1, "b": 2}, {"a": 3, "b": 4}])] == [
        {"sum": 3},
        {"sum": 7},
    ]
    (first, *_) = bench.jobs(add)
    assert (first.task, first.queue, first.payload, first.created_at) == (
        "add",
        "default",
        {"a": 1},
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert (len(bench.jobs()), len(bench.jobs("send"))) == (3, 0)


def test_time_stands_still_until_it_is_moved(bench: Bench) -> None:
    job, later = add.submit_at(timedelta(hours=1), a=1), add.submit_at(datetime(2026, 1, 2, tzinfo=UTC), a=2)
    assert bench.run() == 0
    assert job.status() == "scheduled"
    with pytest.raises(TimeoutError, match="due at 2026-01-01T01:00:00"):
        job.result()
    bench.advance(3599)
    assert job.status() == "scheduled"
    bench.advance(1)
    assert (job.status(), later.status(), bench.now) == ("completed", "scheduled", datetime(2026, 1, 1, 1, tzinfo=UTC))
    bench.advance(timedelta(days=2))
    assert later.result() == {"sum": 3}
    (_, view) = bench.jobs(add)
    assert view.started_at == datetime(2026, 1, 2, tzinfo=UTC)
    with pytest.raises(Invalid, match="must not be negative"):
        bench.advance(-1)


def test_failed_attempts_are_tried_again_after_their_wait(bench: Bench) -> None:
    job = flaky.submit()
    bench.run()
    assert job.status() == "retrying"
    assert bench.advance(9.9) == 0
    assert bench.advance(0.1) == 1
    bench.advance(10)
    assert job.result() == 3
    (view,) = bench.jobs(flaky)
    assert (view.attempt, view.output is not None and view.output.endswith(b"INFO attempt 3\n")) == (3, True)


def test_retries_run_out(bench: Bench) -> None:
    job = flaky.submit(until=99)
    bench.advance(60)
    with pytest.raises(foliot.JobFailed, match="ValueError: not yet") as failed:
        job.result()
    assert (failed.value.status, failed.value.error["kind"]) == ("failed", "ValueError")
    assert flaky.with_options(retries=0).submit(until=99).wait() == "failed"


def test_snoozes_do_not_count_as_attempts_and_are_limited(bench: Bench) -> None:
    job = sleepy.submit(times=2)
    bench.advance(120)
    assert (job.result(), len(calls)) == (1, 3)
    calls.clear()
    too_often = sleepy.submit(times=99)
    bench.advance(600)
    with pytest.raises(foliot.JobFailed, match="SnoozedTooOften"):
        too_often.result()


def test_schedules_fire_at_their_times(bench: Bench) -> None:
    bench.advance(timedelta(hours=3, minutes=59))
    assert calls == ["tick"] * 3
    assert [view.started_at for view in bench.jobs(hourly)] == [
        datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (1, 2, 3)
    ]


def test_a_tick_is_skipped_while_the_previous_run_is_open(bench: Bench) -> None:
    bench.advance(timedelta(hours=4))
    assert [view.created_at for view in bench.jobs(stubborn)] == [datetime(2026, 1, 1, 0, 30, tzinfo=UTC)]


def test_higher_priority_runs_first(bench: Bench) -> None:
    for customer, priority in ((1, 0), (2, 5), (3, -5)):
        send.with_options(priority=priority).submit(customer=customer)
    bench.run()
    assert calls == [2, 1, 3]


def test_keys_are_kept(bench: Bench) -> None:
    once = send.with_options(idempotency_key="order 7")
    first, second = once.submit(customer=7), once.submit(customer=7)
    assert (first == second, second.is_new) == (True, False)
    many = send.with_options(idempotency_key="all")
    assert many.submit_many([{"customer": 1}]) == many.submit_many([{"customer": 1}])
    one = add.with_options(unique="k").submit(a=1)
    assert add.with_options(unique="k").submit(a=2) == one
    with pytest.raises(Conflict, match="has the key 'k' and is ready"):
        add.with_options(unique={"key": "k", "on_conflict": "reject"}).submit(a=3)
    replaced = add.with_options(unique={"key": "k", "on_conflict": "replace"}).submit(a=4)
    assert replaced.result() == {"sum": 5}
    assert add.with_options(unique="k").submit(a=5).is_new


def test_invalid_jobs_are_refused_as_by_the_server(bench: Bench) -> None:
    with pytest.raises(Invalid, match="priority"):
        add.with_options(priority=10_000).submit(a=1)
    with pytest.raises(UnknownTask, match="did you mean 'send'"):
        bench.submit({"task": "sent"})
    with pytest.raises(Invalid, match="declare the schedule with @app"):
        bench.submit({"task": "add", "every": "1h"})
    with pytest.raises(NotFound):
        bench.find("nope")
    with pytest.raises(Invalid, match=r"payload\.wrong: there is no such field"):
        add.submit(wrong=1)  # type: ignore[call-arg]
    with pytest.raises(Invalid, match=r"payload\.a: is required"):
        bench.submit({"task": "add"})


def test_no_server_is_called_and_the_client_of_the_app_is_restored() -> None:
    before = app.server
    with inline(app), pytest.raises(foliot.FoliotError, match="not available while tasks run inline"):
        app.server.client().list_jobs()
    assert app.server is before
    assert type(before) is Server


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(Invalid, match="has no time zone"), inline(app, datetime(2026, 1, 1)):  # noqa: DTZ001
        pass


def test_a_transactional_task_needs_a_database() -> None:
    bank = foliot.App()

    @bank.task(guarantee="transactional")
    async def debit() -> None: ...

    with inline(bank), pytest.raises(Invalid, match="is transactional and needs a database"):
        debit.submit()


async def test_async_code_uses_the_async_methods(bench: Bench) -> None:
    job = await send.submit_async(customer=1)
    assert await job.status_async() == "pending"
    assert await bench.run_async() == 1
    assert await job.result_async() == "sent to 1"
    later = await send.submit_at_async(timedelta(minutes=1), customer=2)
    await bench.advance_async(60)
    assert await later.wait_async() == "completed"
    assert [await handle.result_async() for handle in await send.submit_many_async([{"customer": 3}])] == ["sent to 3"]
    with pytest.raises(foliot.FoliotError, match="await run_async"):
        bench.run()


def test_a_task_that_submits_itself_for_ever_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = foliot.App()

    @endless.task
    def again() -> None:
        again.submit()

    monkeypatch.setattr("foliot.testing.bench.ATTEMPTS_MAX", 50)
    with inline(endless) as bench:
        again.submit()
        with pytest.raises(foliot.FoliotError, match="does a task submit itself"):
            bench.run()
