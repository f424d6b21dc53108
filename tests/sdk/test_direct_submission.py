"""Simultaneous submissions straight to the database: one statement stores them, and each caller gets its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

import foliot
from foliot.errors import StoreUnavailable, UnknownTask
from foliot.model.job_request import JobRequest
from foliot.sdk.direct_client import DatabaseClient
from foliot.store.store import Store
from tests.support.waiting import until

WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


@pytest.fixture
async def connection(store: Store, database_url: str) -> AsyncIterator[foliot.Connection]:
    await store.workers.announce_tasks({"add": "default"})
    opened = foliot.connect(database_url)
    yield opened
    await asyncio.to_thread(opened.close)


@asynccontextmanager
async def nothing_stored(database_url: str, sql: Any) -> AsyncIterator[asyncio.Task[None]]:
    """Blocks submissions with a table lock. Yields a task that ends once the first submission waits."""
    other = await asyncpg.connect(database_url)
    held = other.transaction()
    await held.start()
    await other.execute("lock table foliot.runs in exclusive mode")

    async def is_waiting() -> None:
        async def look() -> bool:
            return bool(await sql.fetchval(WAITING))

        await until(look)

    try:
        yield asyncio.create_task(is_waiting())
    finally:
        await held.rollback()
        await other.close()


async def test_simultaneous_jobs_are_stored_by_one_statement(
    connection: foliot.Connection, database_url: str, sql: Any
) -> None:
    async with nothing_stored(database_url, sql) as waits:
        first = asyncio.create_task(connection.submit_async("add", {"a": 0}))
        await waits
        rest = [asyncio.create_task(connection.submit_async("add", {"a": number})) for number in range(1, 21)]
        # Each task adds its job before it waits for the answer.
        await asyncio.sleep(0)
    made = [await task for task in (first, *rest)]
    rows = await sql.fetch("select id::text, (payload ->> 'a')::int, xmin::text from foliot.runs order by 2")
    assert [(row[0], row[1]) for row in rows] == [(job.id, number) for number, job in enumerate(made)]
    assert len({row[2] for row in rows[1:]}) == 1
    assert rows[0][2] != rows[1][2]


async def test_a_refused_job_does_not_fail_the_others(
    connection: foliot.Connection, database_url: str, sql: Any
) -> None:
    async with nothing_stored(database_url, sql) as waits:
        first = asyncio.create_task(connection.submit_async("add", {"a": 0}))
        await waits
        tasks = [asyncio.create_task(connection.submit_async(name)) for name in ("add", "no_such_task", "add")]
        await asyncio.sleep(0)
    await first
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(one) for one in found] == [foliot.Handle, UnknownTask, foliot.Handle]
    assert await sql.fetchval("select count(*) from foliot.runs") == 3


async def test_a_job_waiting_for_a_unique_key_does_not_delay_others(
    connection: foliot.Connection, database_url: str, sql: Any
) -> None:
    other = await asyncpg.connect(database_url)
    held = other.transaction()
    await held.start()
    await other.execute("select foliot.submit($1::text::jsonb)", '{"task": "add", "unique": {"key": "k"}}')
    keyed = asyncio.create_task(connection.submit_async("add", unique={"key": "k"}))

    async def look() -> bool:
        return bool(await sql.fetchval(WAITING))

    await until(look)
    await connection.submit_async("add")
    assert not keyed.done()
    await held.commit()
    await other.close()
    assert (await keyed).id == str(await sql.fetchval("select id from foliot.runs where unique_key = 'k'"))


async def test_threads_and_tasks_share_the_batcher(connection: foliot.Connection, sql: Any) -> None:
    with ThreadPoolExecutor(8) as threads:
        plain = [threads.submit(connection.submit, "add", {"a": number}) for number in range(40)]
        made = await asyncio.gather(*(connection.submit_async("add", {"a": number}) for number in range(40)))
        made += [await asyncio.wrap_future(future) for future in plain]
    stored = {str(row[0]) for row in await sql.fetch("select id from foliot.runs")}
    assert stored == {job.id for job in made}
    assert len(stored) == 80


async def test_closing_stores_pending_jobs_first(connection: foliot.Connection, database_url: str, sql: Any) -> None:
    async with nothing_stored(database_url, sql) as waits:
        tasks = [asyncio.create_task(connection.submit_async("add", {"a": 0}))]
        await waits
        tasks += [asyncio.create_task(connection.submit_async("add", {"a": number})) for number in range(1, 4)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(asyncio.to_thread(connection.close))
        await asyncio.sleep(0)
    assert len({job.id for job in await asyncio.gather(*tasks)}) == 4
    await closing
    assert await sql.fetchval("select count(*) from foliot.runs") == 4


async def test_a_caller_that_gives_up_in_time_submits_nothing(
    connection: foliot.Connection, database_url: str, sql: Any
) -> None:
    async with nothing_stored(database_url, sql) as waits:
        first = asyncio.create_task(connection.submit_async("add", {"a": 0}))
        await waits
        given_up, other = (asyncio.create_task(connection.submit_async("add", {"a": number})) for number in (1, 2))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
    await first
    await other
    assert [row[0] for row in await sql.fetch("select (payload ->> 'a')::int from foliot.runs order by 1")] == [0, 2]


async def test_a_closed_client_refuses_jobs(store: Store, database_url: str) -> None:
    await store.workers.announce_tasks({"add": "default"})
    client = DatabaseClient(database_url)
    keeper = await asyncio.to_thread(client.keeper)
    await asyncio.to_thread(client.close)
    with pytest.raises(StoreUnavailable, match="this client is closed"):
        keeper.batcher.add_from_thread(JobRequest(task="add"))
