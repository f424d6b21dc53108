"""`foliot.connect`: the same code works over HTTP and straight to the database, sync and async, with a real worker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import psycopg
import pytest

import foliot
from foliot.config import Config
from foliot.errors import ConfigurationError, Conflict, Invalid, NotFound, SchemaError, StoreUnavailable, UnknownTask
from foliot.model.ids import new_id
from foliot.scheduler.promoter import Promoter
from foliot.sdk import direct_client
from foliot.store.store import Store
from tests.support.server import PostgresServer
from tests.support.workers import worker_node

T = TypeVar("T")
TOMORROW = timedelta(days=1)


@pytest.fixture
async def app(store: Store) -> foliot.App:
    app = foliot.App()

    @app.task
    async def add(a: int, b: int = 1) -> dict[str, int]:
        return {"sum": a + b}

    @app.task(retries=0)
    def explode() -> None:
        raise ValueError("exploded")

    await store.workers.announce_tasks({name: task.queue for name, task in app.tasks.items()})
    return app


@pytest.fixture
async def working(app: foliot.App, store: Store) -> AsyncIterator[None]:
    promoter = Promoter(store=store, clock=store.database.clock, events=store.events)
    await promoter.start()
    async with worker_node(store, app):
        yield
    await promoter.stop()


@pytest.fixture(params=["http", "database"])
async def connection(
    request: pytest.FixtureRequest, server_url: str, database_url: str, app: foliot.App
) -> AsyncIterator[foliot.Connection]:
    _ = app
    opened = foliot.connect(server_url if request.param == "http" else database_url)
    yield opened
    await asyncio.to_thread(opened.close)


@pytest.fixture
async def straight(database_url: str, app: foliot.App) -> AsyncIterator[foliot.Connection]:
    _ = app
    opened = foliot.connect(database_url)
    yield opened
    await asyncio.to_thread(opened.close)


async def plainly(work: Callable[[], T]) -> T:
    return await asyncio.to_thread(work)


@pytest.mark.usefixtures("working")
async def test_sync_code_submits_waits_and_reads(connection: foliot.Connection) -> None:
    def program() -> list[Any]:
        one = connection.submit("add", {"a": 1, "b": 2}, queue="default", priority=3)
        soon = connection.submit_at("add", timedelta(seconds=0.01), {"a": 2})
        then = connection.submit_at("add", datetime(2020, 1, 1, tzinfo=UTC), {"a": 3})
        many = connection.submit_many("add", [{"a": number} for number in range(3)])
        bad = connection.submit("explode")
        assert connection.wait(bad.id, timeout=30) == connection.status(bad.id) == "failed"
        with pytest.raises(foliot.JobFailed, match="exploded"):
            connection.result(bad.id)
        assert connection.submit_many("add", []) == []
        return [connection.result(job.id, timeout=30)["sum"] for job in (one, soon, then, *many)]

    assert await plainly(program) == [3, 3, 4, 1, 2, 3]


@pytest.mark.usefixtures("working")
async def test_async_code_does_the_same(connection: foliot.Connection) -> None:
    async with connection:
        one = await connection.submit_async("add", {"a": 1})
        soon = await connection.submit_at_async("add", timedelta(seconds=0.01), {"a": 2})
        many = await connection.submit_many_async("add", [{"a": 5}, {"a": 6}])
        results = await asyncio.gather(*(connection.result_async(job.id, timeout=30) for job in (one, soon, *many)))
        assert [found["sum"] for found in results] == [2, 3, 6, 7]
        assert await connection.wait_async(one.id) == await connection.status_async(one.id) == "completed"


async def test_a_job_is_cancelled_and_an_unknown_one_is_not_found(connection: foliot.Connection) -> None:
    first, second = await plainly(lambda: connection.submit_many("add", [{"a": 1}, {"a": 2}], name="to be cancelled"))
    assert await plainly(lambda: connection.cancel(first.id, "not needed")) == "cancelled"
    assert await connection.cancel_async(second.id) == "cancelled"
    assert await plainly(first.status) == await second.status_async() == "cancelled"
    for reference in (str(new_id()), "no such name"):
        with pytest.raises(NotFound, match="there is no"):
            await connection.status_async(reference)
        with pytest.raises(NotFound):
            await connection.cancel_async(reference)


async def test_waiting_times_out(connection: foliot.Connection) -> None:
    job = await connection.submit_at_async("add", TOMORROW, {"a": 1})
    with pytest.raises(TimeoutError, match=r"has not ended within 0\.1 s"):
        await plainly(lambda: connection.wait(job.id, timeout=0.1))
    with pytest.raises(TimeoutError):
        await job.wait_async(timeout=0.1)
    assert await connection.status_async(job.id) == "scheduled"


async def test_both_refuse_invalid_jobs_and_store_nothing(connection: foliot.Connection, sql: Any) -> None:
    with pytest.raises(UnknownTask, match="no worker"):
        await connection.submit_async("nope")
    with pytest.raises(Invalid, match="priority"):
        await connection.submit_async("add", priority=5000)
    with pytest.raises(Invalid, match="retries"):
        await connection.submit_async("add", retries=-1)
    with pytest.raises(Invalid, match="colour"):
        await connection.submit_async("add", colour="red")
    with pytest.raises(Invalid, match="expires_at"):
        await connection.submit_async("add", expires_at="2030-01-01T00:00:00")
    with pytest.raises(Invalid):
        await connection.submit_async("add", {"a": object()})
    with pytest.raises(Invalid):
        await connection.submit_many_async("add", [{}] * 10_001)
    await connection.submit_async(
        "add", unique={"key": "one", "on_conflict": "reject"}, expires_at=datetime(2199, 1, 1, tzinfo=UTC)
    )
    with pytest.raises(Conflict, match="one"):
        await connection.submit_async("add", unique={"key": "one", "on_conflict": "reject"})
    assert await sql.fetchval("select count(*) from foliot.runs") == 1


async def test_a_job_is_submitted_in_the_transaction_of_the_caller(
    connection: foliot.Connection, database_url: str, sql: Any
) -> None:
    async with sql.transaction():
        kept = await connection.submit_in_async(sql, "add", {"a": 1}, priority=2)
    assert await kept.status_async() == "pending"

    def program() -> str:
        with psycopg.connect(database_url) as session:
            lost = connection.submit_in(session, "add", {"a": 1})
            session.rollback()
        return lost.id

    with pytest.raises(NotFound):
        await connection.status_async(await plainly(program))


async def test_operations_that_need_a_server_are_refused_with_a_reason(
    straight: foliot.Connection, server_url: str, database_url: str
) -> None:
    with pytest.raises(
        ConfigurationError, match=r"is a database, and this operation needs a server; use an http:// URL"
    ):
        _ = straight.operations
    workflow = foliot.Workflow("w")
    workflow.step("one", "add")
    with pytest.raises(ConfigurationError, match="needs a server"):
        await plainly(lambda: workflow.submit(straight))
    with pytest.raises(Invalid, match="idempotency_key: only a server remembers idempotency keys"):
        await straight.submit_async("add", idempotency_key="k")
    with foliot.connect(server_url) as connection, connection.operations as operations:
        assert [queue["name"] for queue in await plainly(lambda: operations.list_queues().document["items"])] == [
            "default"
        ]


async def test_an_unusable_database_is_reported(
    postgres: PostgresServer, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_client, "Config", lambda **_: Config(database_retry_seconds=0.1))
    for url in ("postgresql://foliot:hunter2@127.0.0.1:1/x", database_url.replace("/test_", "/no_such_")):
        with foliot.connect(url) as nowhere:
            with pytest.raises(StoreUnavailable) as raised:
                await nowhere.submit_async("add")
            assert "hunter2" not in raised.value.detail
    empty = await postgres.empty()
    with foliot.connect(postgres.url_of(empty)) as nowhere, pytest.raises(SchemaError):
        await nowhere.submit_async("add")
    await postgres.drop(empty)


async def test_a_closed_connection_opens_again_and_leaves_no_thread(straight: foliot.Connection) -> None:
    job = await straight.submit_async("add", {"a": 1})
    await plainly(straight.close)
    assert not [thread for thread in threading.enumerate() if thread.name == "foliot database"]
    assert await straight.status_async(job.id) == "pending"


@pytest.mark.usefixtures("app")
async def test_an_app_can_submit_straight_to_the_database(database_url: str, sql: Any) -> None:
    direct = foliot.App(url=database_url)
    direct.task(name="add")(lambda a: a)
    await direct.tasks["add"].submit_many_async([{"a": 1}, {"a": 2}])
    await plainly(direct.close)
    assert await sql.fetchval("select count(*) from foliot.runs") == 2


def test_an_address_of_another_kind_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"^'redis://:\*\*\*@x': must begin with http://, https:// or postgresql://$"
    ):
        foliot.connect("redis://:secret@x")


@pytest.mark.usefixtures("app")
async def test_the_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    monkeypatch.setenv("FOLIOT_URL", database_url)
    async with foliot.connect() as connection:
        assert await connection.status_async((await connection.submit_async("add", {"a": 1})).id) == "pending"
