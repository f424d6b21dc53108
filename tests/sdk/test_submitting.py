"""Submitting from Python to a real server and a real worker, from sync and async code."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

import foliot
from foliot.errors import Conflict, Invalid, TooLarge, UnknownTask, Unreachable
from foliot.scheduler.promoter import Promoter
from foliot.store.store import Store
from tests.support.workers import worker_node

T = TypeVar("T")


@pytest.fixture
async def app(server_url: str) -> AsyncIterator[foliot.App]:
    app = foliot.App(url=server_url)

    @app.task
    async def add(a: int, b: int = 1) -> dict[str, int]:
        return {"sum": a + b}

    @app.task(retries=0)
    def explode(when: str = "now") -> None:
        raise ValueError(f"exploded {when}")

    yield app
    app.close()


@pytest.fixture
async def known(app: foliot.App, store: Store) -> None:
    """Announces the tasks without a worker that runs them."""
    await store.workers.announce_tasks({name: task.queue for name, task in app.tasks.items()})


@pytest.fixture
async def working(app: foliot.App, store: Store) -> AsyncIterator[None]:
    promoter = Promoter(store=store, clock=store.database.clock, events=store.events)
    await promoter.start()
    async with worker_node(store, app):
        yield
    await promoter.stop()


async def plainly(work: Callable[[], T]) -> T:
    """Runs a function as in a program without an event loop."""
    return await asyncio.to_thread(work)


@pytest.mark.usefixtures("working")
async def test_a_job_is_submitted_awaited_and_its_result_read(app: foliot.App) -> None:
    def program() -> tuple[str, str, Any]:
        handle = app.tasks["add"].submit(a=2, b=3)
        return handle.wait(timeout=60), handle.status(), handle.result()

    assert await plainly(program) == ("completed", "completed", {"sum": 5})
    handle = await app.tasks["add"].submit_async(a=2)
    assert await handle.wait_async(timeout=60) == "completed"
    assert (await handle.status_async(), await handle.result_async()) == ("completed", {"sum": 3})
    assert type(await handle.result_async()) is dict


@pytest.mark.usefixtures("working")
async def test_the_handle_of_a_failed_job_raises_its_error(app: foliot.App) -> None:
    handle = await app.tasks["explode"].submit_async(when="today")
    for asked in (plainly(lambda: handle.result(timeout=60)), handle.result_async(timeout=60)):
        with pytest.raises(foliot.JobFailed, match="ValueError: exploded today") as raised:
            await asked
        assert (raised.value.status, raised.value.error["kind"]) == ("failed", "ValueError")
        assert handle.id in raised.value.detail


@pytest.mark.usefixtures("known")
async def test_waiting_times_out(app: foliot.App) -> None:
    handle = await app.tasks["add"].submit_async(a=1)
    assert await handle.status_async() == "pending"
    for waiting in (plainly(lambda: handle.wait(0.1)), handle.wait_async(0.1), handle.result_async(0)):
        with pytest.raises(TimeoutError, match=handle.id):
            await waiting


@pytest.mark.usefixtures("working")
async def test_a_delayed_job_starts_at_its_time(app: foliot.App) -> None:
    add = app.tasks["add"]
    for when in (timedelta(seconds=0.2), datetime.now(UTC) + timedelta(seconds=0.2), timedelta(seconds=-5)):
        assert await (await plainly(lambda when=when: add.submit_at(when, a=1))).result_async(60) == {"sum": 2}  # type: ignore[misc]
        assert await (await add.submit_at_async(when, a=1)).result_async(60) == {"sum": 2}
    tomorrow = await add.submit_at_async(timedelta(days=1), a=1)
    assert await tomorrow.status_async() == "scheduled"


async def test_an_instant_without_a_zone_is_refused(app: foliot.App) -> None:
    with pytest.raises(Invalid, match="has no time zone"):
        app.tasks["add"].submit_at(datetime(2030, 1, 1), a=1)  # noqa: DTZ001


@pytest.mark.usefixtures("working")
async def test_many_jobs_are_submitted_in_one_call(app: foliot.App, sql: Any) -> None:
    add = app.tasks["add"]
    handles = await plainly(lambda: add.submit_many([{"a": n} for n in range(20)]))
    handles += await add.submit_many_async([{"a": n} for n in range(20, 40)])
    assert [await handle.result_async(60) for handle in handles] == [{"sum": n + 1} for n in range(40)]
    assert len({handle.id for handle in handles}) == 40
    assert add.submit_many([]) == await add.submit_many_async([]) == []


@pytest.mark.usefixtures("known")
async def test_submit_many_stores_all_or_nothing(app: foliot.App, sql: Any) -> None:
    with pytest.raises(Invalid, match="jobs: must be 1 to 10000"):
        await app.tasks["add"].submit_many_async([{"a": 1}] * 10_001)
    with pytest.raises(Invalid, match=r"jobs\[1\]\.payload\.a: must be an integer"):
        await app.tasks["add"].submit_many_async([{"a": 1}, {"a": "one"}])
    anything = app.task(name="anything")(lambda **_: None)
    with pytest.raises(Invalid, match=r"jobs\[1\].payload.a"):
        await anything.submit_many_async([{"a": 1}, {"a": "nul \0"}])
    assert await sql.fetchval("select count(*) from foliot.runs") == 0


@pytest.mark.usefixtures("known")
async def test_options_are_passed_to_the_job(app: foliot.App, sql: Any) -> None:
    expires = datetime(2190, 1, 1, tzinfo=UTC)
    prepared = app.tasks["add"].with_options(
        name="sum", queue="slow", priority=5, retries=7, timeout=2.5, backoff=foliot.Backoff(kind="list", waits=(1, 2)),
        retry_on=[OSError, 75], never_on=["ValueError"], max_snoozes=3, expires_at=expires, unique={"key": "u",
            "on_conflict": "replace"},
    )  # fmt: skip
    await prepared.submit_async(a=1)
    row = dict(
        await sql.fetchrow("select name, queue, priority, unique_key, expires_at, options::text from foliot.runs")
    )
    assert row == {
        "name": "sum", "queue": "slow", "priority": 5, "unique_key": "u", "expires_at": expires,
        "options": '{"backoff": {"kind": "list", "waits": [1.0, 2.0]}, "retries": 7, "never_on": ["ValueError"], '
        '"retry_on": ["builtins.OSError", 75], "max_snoozes": 3, "timeout_seconds": 2.5}',
    }  # fmt: skip


@pytest.mark.usefixtures("known")
async def test_keys_return_the_existing_job(app: foliot.App, sql: Any) -> None:
    add = app.tasks["add"]
    once = add.with_options(idempotency_key="order 7")
    first, again = await plainly(lambda: once.submit(a=1)), await once.submit_async(a=1)
    assert (first == again, first.is_new, again.is_new) == (True, True, False)
    with pytest.raises(Conflict, match="another request"):
        await once.submit_async(a=2)
    first, again = [await add.with_options(unique="report").submit_async(a=1) for _ in range(2)]
    assert (first == again, again.is_new) == (True, False)
    many = add.with_options(idempotency_key="batch")
    assert await many.submit_many_async([{"a": 1}, {"a": 2}]) == await plainly(
        lambda: many.submit_many([{"a": 1}, {"a": 2}])
    )
    assert await sql.fetchval("select count(*) from foliot.runs") == 4


async def test_refusals_of_the_server_are_raised_unchanged(app: foliot.App) -> None:
    for submitted in (plainly(lambda: app.tasks["add"].submit(a=1)), app.tasks["add"].submit_async(a=1)):
        with pytest.raises(UnknownTask, match="no worker knows a task named 'add'"):
            await submitted
    anything = app.task(name="anything")(lambda **_: None)
    with pytest.raises(TooLarge):
        await anything.submit_async(a="x" * 2_000_000)
    for task in (anything, app.tasks["add"]):
        with pytest.raises(Invalid, match="can't be written as JSON"):
            await task.submit_async(a=object())


async def test_a_missing_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_URL", "http://127.0.0.1:9")
    app = foliot.App()
    task = app.task(name="t")(lambda: None)
    for submitted in (plainly(task.submit), task.submit_async()):
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9"):
            await submitted
    app.close()


@pytest.mark.usefixtures("known")
async def test_the_environment_selects_the_server_and_connections_are_kept_by_address(
    server_url: str, app: foliot.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOT_URL", server_url)
    other = foliot.App()
    task = other.task(name="add")(lambda a: a)
    handle = await plainly(lambda: task.submit(a=1))
    assert await plainly(handle.status) == "pending"
    assert other.server.client() is other.server.client()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(os, "getpid", lambda: -1)
        forked = other.server.client()
    assert forked is not other.server.client()
    forked.close()
    other.close()
