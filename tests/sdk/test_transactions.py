"""Submitting inside the caller's own transaction with real drivers: the job exists only if it commits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

import foliot
from foliot.errors import Invalid
from foliot.model.ids import made_at, new_id
from foliot.store.store import Store
from tests.support.runs import claim_runs
from tests.support.waiting import until
from tests.support.workers import worker_node

app = foliot.App()


@app.task(queue="mail")
def send(customer_id: int = 0, text: str = "") -> None: ...


@pytest.fixture(autouse=True)
async def known(store: Store) -> None:
    await store.workers.announce_tasks({"send": "mail"})


async def stored(sql: Any) -> list[UUID]:
    return [row[0] for row in await sql.fetch("select id from foliot.runs order by created_at")]


async def test_psycopg_connection(database_url: str, sql: Any) -> None:
    with psycopg.connect(database_url) as connection:
        send.submit_in(connection, customer_id=6)
        connection.rollback()
        handle = send.submit_in(connection, customer_id=7)
        assert await stored(sql) == []
        connection.commit()
        assert [str(run) for run in await stored(sql)] == [handle.id]
        assert handle.is_new is None
        connection.row_factory = dict_row  # type: ignore[assignment]
        second = send.submit_in(connection, customer_id=8)
    assert [str(run) for run in await stored(sql)] == [handle.id, second.id]
    assert (
        await sql.fetchval("select payload::text from foliot.runs order by created_at limit 1") == '{"customer_id": 7}'
    )


async def test_async_psycopg(database_url: str, sql: Any) -> None:
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        await send.submit_in_async(connection, customer_id=6)
        await connection.rollback()
        handle = await send.submit_in_async(connection, customer_id=7)
        assert await stored(sql) == []
    assert [str(run) for run in await stored(sql)] == [handle.id]


async def test_asyncpg(database_url: str, sql: Any) -> None:
    async with asyncpg.create_pool(database_url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        # The caller's own codec for jsonb must not interfere.
        await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        transaction = connection.transaction()
        await transaction.start()
        await send.submit_in_async(connection, customer_id=6)
        await transaction.rollback()
        async with connection.transaction():
            handle = await send.submit_in_async(connection, customer_id=7)
            assert await stored(sql) == []
    assert [str(run) for run in await stored(sql)] == [handle.id]


async def test_sqlalchemy(database_url: str, sql: Any) -> None:
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(database_url), poolclass=NullPool
    )
    with engine.connect() as connection:
        send.submit_in(connection, customer_id=5)
    with Session(engine) as session:
        send.submit_in(session, customer_id=6)
        session.rollback()
    assert await stored(sql) == []
    with engine.begin() as connection:
        first = send.submit_in(connection, customer_id=7)
    with Session(engine) as session, session.begin():
        second = send.submit_in(session, customer_id=8)
        assert len(await stored(sql)) == 1
    scoped = scoped_session(sessionmaker(engine))
    third = send.submit_in(scoped, customer_id=9)
    scoped.commit()
    scoped.remove()
    assert [str(run) for run in await stored(sql)] == [first.id, second.id, third.id]


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_async_sqlalchemy(database_url: str, sql: Any, driver: str) -> None:
    connect = {"asyncpg": asyncpg.connect, "psycopg": psycopg.AsyncConnection.connect}[driver]
    engine = create_async_engine(
        f"postgresql+{driver}://", async_creator=lambda: connect(database_url), poolclass=NullPool
    )
    async with engine.connect() as connection:
        await send.submit_in_async(connection, customer_id=6)
    async with engine.begin() as connection:
        first = await send.submit_in_async(connection, customer_id=7)
    async with AsyncSession(engine) as session, session.begin():
        second = await send.submit_in_async(session, customer_id=8)
        assert len(await stored(sql)) == 1
    await engine.dispose()
    assert [str(run) for run in await stored(sql)] == [first.id, second.id]


async def test_the_wrong_kind_of_connection_is_refused_with_the_right_method(database_url: str, sql: Any) -> None:
    with (
        psycopg.connect(database_url) as connection,
        pytest.raises(TypeError, match=r"psycopg\.Connection; use submit_in"),
    ):
        await send.submit_in_async(connection)
    with pytest.raises(TypeError, match="use submit_in_async"):
        send.submit_in(sql)
    for nonsense in (None, "postgresql://", object()):
        with pytest.raises(TypeError, match="is not an asyncpg or psycopg connection"):
            send.submit_in(nonsense)


@pytest.mark.parametrize("text", ["nul \0", "\ud800"])
async def test_a_refused_job_does_not_abort_the_transaction(database_url: str, sql: Any, text: str) -> None:
    with psycopg.connect(database_url) as connection:
        with pytest.raises(Invalid, match="payload"):
            send.submit_in(connection, text=text)
        send.submit_in(connection, text="the word \\u0000")
    assert len(await stored(sql)) == 1


def test_no_driver_is_imported_before_its_connection_is_used() -> None:
    code = (
        "import sys, foliot, foliot.sdk.transactions; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert {"asyncpg", "psycopg", "sqlalchemy"} & set(loaded) == set()


class TestSqlFunction:
    """`foliot.submit`, as called from any language."""

    @pytest.fixture
    async def session(self, database_url: str) -> AsyncIterator[Any]:
        session = await asyncpg.connect(database_url)
        yield session
        await session.close()

    async def submit(self, session: Any, **fields: Any) -> UUID:
        found: UUID = await session.fetchval("select foliot.submit($1)", json.dumps({"task": "send", **fields}))
        return found

    async def test_the_function_stores_the_same_rows_as_the_api(self, store: Store, session: Any, sql: Any) -> None:
        fields = {
            "payload": {"a": 1}, "name": "n", "priority": 3, "retries": 2, "timeout_seconds": 1.5,
            "backoff": {"kind": "fixed"},
            "retry_on": ["OSError"], "never_on": [75], "max_snoozes": 4, "expires_at": "2190-01-01T00:00:00Z",
            "queue": None,
        }  # fmt: skip
        before = await sql.fetchval("select clock_timestamp()")
        run_id = await self.submit(session, **fields)
        row = dict(
            await sql.fetchrow(
                "select *, payload::text, options::text, (extract(epoch from due_at) * 1000000)::bigint as due from "
                "foliot.runs"
            )
        )
        assert [row[name] for name in ("id", "state", "queue", "task", "name")] == [
            run_id,
            "ready",
            "mail",
            "send",
            "n",
        ]
        assert (row["token"], row["attempt"], row["priority"], row["payload"]) == (0, 0, 3, '{"a": 1}')
        assert json.loads(row["options"]) == {name: fields[name] for name in list(fields)[3:9]}
        assert row["rank"] == row["due"] - 3 * 300_000_000
        assert run_id.version == 7
        assert abs((made_at(run_id) - before).total_seconds()) < 60
        (claim,) = await claim_runs(store, new_id(), {"mail": 1}, ["send"])
        assert claim.run_id == run_id

    async def test_a_delayed_job_waits_until_it_is_due(self, session: Any, sql: Any) -> None:
        later = await self.submit(session, delay_seconds=60)
        at = await self.submit(session, schedule_time="2190-01-01T00:00:00+02:00")
        past = await self.submit(session, schedule_time="2001-01-01T00:00:00Z")
        rows = await sql.fetch(
            "select id, state, due_at - created_at, due_at, payload, options, unique_key from foliot.runs"
        )
        found = {row[0]: row for row in rows}
        assert (found[later][1], found[later][2].total_seconds()) == ("scheduled", 60)
        assert (found[at][1], found[at][3].isoformat()) == ("scheduled", "2189-12-31T22:00:00+00:00")
        assert (found[past][1], found[past][2].total_seconds()) == ("ready", 0)
        assert tuple(found[past])[4:] == (None, None, None)

    @pytest.mark.parametrize(
        ("fields", "complaint"),
        [
            ({"task": "sned"}, "no worker knows a task named 'sned'"),
            ({"task": None}, "no worker knows a task named null"),
            ({"cron": "* * * * *"}, "cron: there is no such field here"),
            ({"payload": [1]}, "payload: must be a JSON object"),
            ({"queue": "a b"}, "queue: letters"),
            ({"priority": 1001}, "priority: must be"),
            ({"delay_seconds": -1}, "delay_seconds: must be"),
            ({"delay_seconds": 1, "schedule_time": "2190-01-01T00:00:00Z"}, "delay_seconds: must be"),
            ({"schedule_time": "2190-01-01T00:00:00"}, "with an offset"),
            ({"unique": {}}, "unique: key"),
            ({"unique": {"key": ""}}, "unique: key"),
            ({"unique": {"key": "k", "on_conflict": "x"}}, "unique: on_conflict"),
        ],
    )
    async def test_invalid_jobs_are_refused_with_a_sentence(
        self, session: Any, sql: Any, fields: dict[str, Any], complaint: str
    ) -> None:
        with pytest.raises(asyncpg.InvalidParameterValueError, match=complaint):
            await self.submit(session, **fields)
        assert await stored(sql) == []

    async def test_a_unique_key_holds_across_transactions(self, session: Any, sql: Any) -> None:
        first = await self.submit(session, unique={"key": "k"}, payload={"n": 1})
        assert await self.submit(session, unique={"key": "k"}, payload={"n": 2}) == first
        with pytest.raises(asyncpg.UniqueViolationError, match=str(first)):
            await self.submit(session, unique={"key": "k", "on_conflict": "reject"})
        assert (
            await self.submit(
                session, unique={"key": "k", "on_conflict": "replace"}, payload={"n": 3}, delay_seconds=60
            )
            == first
        )
        assert tuple(await sql.fetchrow("select state, payload::text from foliot.runs")) == ("scheduled", '{"n": 3}')
        limited = {"concurrency": {"key": "c", "limit": 1}}
        for fields, state, held_by in (
            (limited, "held", "limit"),
            ({}, "ready", None),
            ({"delay_seconds": 60}, "scheduled", None),
        ):
            await self.submit(session, unique={"key": "k", "on_conflict": "replace"}, payload={"n": 3}, **fields)
            assert tuple(await sql.fetchrow("select state, held_by from foliot.runs")) == (state, held_by)
        await sql.execute("update foliot.runs set started_at = now()")
        assert await self.submit(session, unique={"key": "k", "on_conflict": "replace"}, payload={"n": 4}) == first
        assert await sql.fetchval("select payload::text from foliot.runs") == '{"n": 3}'


async def test_a_job_of_a_committed_transaction_is_found_and_run(database_url: str, store: Store) -> None:
    shop = foliot.App()

    @shop.task
    def pack(n: int) -> int:
        return n * 2

    async with worker_node(store, shop):
        with psycopg.connect(database_url) as connection:
            handle = pack.submit_in(connection, n=21)

        async def result() -> Any:
            view = await store.runs.get_run(UUID(handle.id))
            return view is not None and view.result

        assert await until(result) == 42
