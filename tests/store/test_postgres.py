"""Statements survive restarts, lost connections, failovers and locks. Statements that can't be repeated safely are not
repeated."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NoReturn

import asyncpg
import msgspec
import psutil
import pytest

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.embedded import EmbeddedPostgres
from foliot.errors import StoreUnavailable
from foliot.events import Event, EventBus, StoreInterrupted
from foliot.model.ids import new_id, new_id_texts
from foliot.model.outcome import Outcome
from foliot.model.run import NewRun, SubmittedRun
from foliot.model.states import RunState
from foliot.service import own_task
from foliot.store.postgres import IDLE_SECONDS, Database, Transaction
from foliot.store.queries import Query
from foliot.store.store import Store, open_store
from tests.support.audit import entry_for
from tests.support.fake_clock import FakeClock
from tests.support.proxy import Proxy, proxy_to
from tests.support.runs import claim_runs
from tests.support.server import PostgresServer

PING = Query("ping", "select 42")
PID = Query("pid", "select pg_backend_pid()")
SLEEP = Query("sleep", "select pg_sleep($1)")
# A restart may take this long on a busy machine.
PATIENT = Config(database_retry_seconds=60)
FINISH = """
with gone as (delete from foliot.runs where id = $1 returning *)
insert into foliot.history (id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state,
    queue, task)
select id, created_at, due_at, started_at, clock_timestamp(), token, attempt, lost, priority, 'succeeded', queue, task
    from gone
"""
WAITING = "select exists (select from pg_locks where not granted)"


def run() -> NewRun:
    return NewRun(id=new_id(), task="t", queue="q")


async def terminate_all(sql: Any) -> None:
    await sql.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> "
        "pg_backend_pid()"
    )


async def test_every_session_has_its_limits(store: Store, config: Config) -> None:
    limits = {
        "statement_timeout": config.database_statement_seconds,
        "lock_timeout": config.database_lock_seconds,
        "idle_in_transaction_session_timeout": config.database_idle_in_transaction_seconds,
    }
    for name, seconds in limits.items():
        shown = await store.database.fetch_value(
            Query(name, "select setting::float8 / 1000 from pg_settings where name = $1"), name
        )
        assert shown == seconds


async def test_a_terminated_session_is_replaced_transparently(store: Store, sql: Any, seen: list[Event]) -> None:
    for _ in range(5):
        assert await store.database.fetch_value(PING) == 42
        await terminate_all(sql)
    sleeping = asyncio.create_task(store.database.fetch(SLEEP, 2.0))
    while not await sql.fetchval(
        "select count(*) from pg_stat_activity where query like '%pg_sleep($1)%' and pid <> pg_backend_pid()"
    ):
        await asyncio.sleep(0.01)
    await terminate_all(sql)
    await sleeping
    assert any(isinstance(event, StoreInterrupted) for event in seen)


async def test_a_statement_that_can_not_be_repeated_is_reported_as_doubtful(store: Store, sql: Any) -> None:
    sleeping = asyncio.create_task(store.database.fetch(SLEEP, 5.0, is_repeatable=False))
    while not await sql.fetchval(
        "select count(*) from pg_stat_activity where query like '%pg_sleep($1)%' and pid <> pg_backend_pid()"
    ):
        await asyncio.sleep(0.01)
    await terminate_all(sql)
    with pytest.raises(StoreUnavailable) as caught:
        await sleeping
    assert caught.value.is_doubtful


async def test_a_statement_that_can_never_succeed_fails_at_once(store: Store, seen: list[Event]) -> None:
    with pytest.raises(asyncpg.UndefinedTableError):
        await store.database.fetch(Query("bad", "select * from nowhere"))
    assert seen == []


async def test_a_statement_on_a_locked_row_waits_and_is_repeated(
    database_url: str, events: EventBus, sql: Any, seen: list[Event]
) -> None:
    config = Config(database_lock_seconds=0.1)
    async with open_store(database_url, config=config, clock=SystemClock(), events=events, part="test") as store:
        worker = new_id()
        await store.workers.register_worker(worker, "w", {}, [])
        async with sql.transaction():
            await sql.execute("select * from foliot.workers for update")
            with events.expect(StoreInterrupted) as interrupted:
                beating = asyncio.create_task(store.workers.beat(worker, []))
                assert "LockNotAvailable" in (await interrupted).error
        assert (await beating).is_renewed


async def test_a_silent_session_times_out_and_is_dropped(database_url: str, events: EventBus) -> None:
    config = Config(database_statement_seconds=1, database_retry_seconds=1)
    async with (
        proxy_to(database_url) as (proxy, url),
        Database(url, config=config, clock=SystemClock(), events=events) as database,
    ):
        assert await database.fetch_value(PING) == 42
        proxy.is_silent = True
        with pytest.raises(StoreUnavailable):
            await database.fetch_value(PING)
        proxy.is_silent = False
        assert await database.fetch_value(PING) == 42


class TestOwnServer:
    @pytest.fixture
    async def server(self, tmp_path: Path) -> AsyncIterator[EmbeddedPostgres]:
        server = EmbeddedPostgres(tmp_path / "data", clock=SystemClock())
        yield server
        await server.stop()

    async def test_a_crash_and_restart_is_survived(self, server: EmbeddedPostgres, events: EventBus) -> None:
        url = await server.start()
        async with open_store(url, config=PATIENT, clock=SystemClock(), events=events, part="test") as store:
            await store.migrate()
            await store.run_inserts.insert_runs([run() for _ in range(100)])
            postmaster = int((server.data / "postmaster.pid").read_text().split()[0])
            for process in [psutil.Process(postmaster), *psutil.Process(postmaster).children(recursive=True)]:
                process.send_signal(signal.SIGKILL)
            await server.exited.wait()
            with events.expect(StoreInterrupted) as interrupted:
                claiming = asyncio.create_task(store.claims.recover_claims(new_id(), []))
                await interrupted
            await server.start()
            assert await claiming == []
            assert len(await claim_runs(store, new_id(), {"q": 1000}, ["t"])) == 100

    async def test_a_demoted_primary_is_left_for_a_writable_one(
        self, server: EmbeddedPostgres, events: EventBus
    ) -> None:
        url = await server.start()
        async with open_store(url, config=PATIENT, clock=SystemClock(), events=events, part="test") as store:
            await store.migrate()
            admin = await asyncpg.connect(url)
            await admin.execute("alter system set default_transaction_read_only = on")
            await admin.execute("select pg_reload_conf()")
            while not await store.database.fetch_value(
                Query("ro", "select current_setting('transaction_read_only') = 'on'")
            ):
                await asyncio.sleep(0.01)
            assert not await store.can_write()
            with events.expect(StoreInterrupted, lambda event: "TargetServer" in event.error) as refused:
                inserting = asyncio.create_task(store.run_inserts.insert_runs([run()]))
                await refused
            await admin.execute("set default_transaction_read_only = off")
            await admin.execute("alter system reset default_transaction_read_only")
            await admin.execute("select pg_reload_conf()")
            assert len(await inserting) == 1
            assert await store.can_write()
            await admin.close()


class TestLostAnswer:
    """The statement was executed, but its answer never arrived."""

    @pytest.fixture
    async def lossy(self, database_url: str, events: EventBus) -> AsyncIterator[tuple[Proxy, Store]]:
        async with (
            proxy_to(database_url) as (proxy, url),
            open_store(url, config=Config(), clock=SystemClock(), events=events, part="test") as store,
        ):
            yield proxy, store

    async def test_an_insert_is_stored_once(self, lossy: tuple[Proxy, Store], sql: Any) -> None:
        proxy, store = lossy
        given = [run() for _ in range(3)]
        proxy.swallow_answer_to("insert into foliot.runs")
        stored = await store.run_inserts.insert_runs(given)
        assert proxy.swallowed.is_set()
        assert set(stored) == {r.id for r in given}
        assert await sql.fetchval("select count(*) from foliot.runs") == 3

    async def test_equal_runs_are_stored_once_and_completely(self, lossy: tuple[Proxy, Store], sql: Any) -> None:
        proxy, store = lossy
        ids = new_id_texts(300)
        proxy.swallow_answer_to("insert into foliot.runs")
        assert (await store.run_inserts.insert_alike(run(), ids, json.dumps(ids))).state is RunState.READY
        assert proxy.swallowed.is_set()
        stored = await sql.fetch("select id, payload #>> '{}' as payload from foliot.runs order by rank")
        assert [(str(row["id"]), row["payload"]) for row in stored] == [(one, one) for one in ids]

    async def test_a_repeated_insert_does_not_revive_finished_runs(
        self, lossy: tuple[Proxy, Store], store: Store, sql: Any
    ) -> None:
        proxy, far = lossy
        given = run()
        worker = new_id()
        proxy.swallow_answer_to("insert into foliot.runs")
        inserting = asyncio.create_task(far.run_inserts.insert_runs([given]))
        while not (claims := await claim_runs(store, worker, {"q": 1}, ["t"])):
            await asyncio.sleep(0)
        await store.outcomes.finish_runs(worker, [Outcome(claims[0].run_id, claims[0].token, RunState.SUCCEEDED)])
        assert set(await inserting) == {given.id}
        assert await sql.fetchval("select count(*) from foliot.runs") == 0
        assert await sql.fetchval("select count(*) from foliot.history") == 1

    async def test_a_repeated_insert_does_not_revive_runs_that_finish_during_it(self, store: Store, sql: Any) -> None:
        """The insert does not find the run in history yet. After waiting for the statement that ends the run, it is no
        longer among the live runs either."""
        given, worker = run(), new_id()
        await store.run_inserts.insert_runs([given])
        (claim,) = await claim_runs(store, worker, {"q": 1}, ["t"])
        async with sql.transaction():
            await sql.execute(FINISH, given.id)

            async def insert_again() -> list[SubmittedRun]:
                async with store.database.transaction() as session:
                    return await store.submissions.submit_within(Transaction(session, is_repetition=True), [given])

            inserting = asyncio.create_task(insert_again())
            while not await sql.fetchval(WAITING):
                await asyncio.sleep(0.01)
        (found,) = await inserting
        assert (found.id, found.state, claim.run_id) == (given.id, RunState.SUCCEEDED, given.id)
        assert await sql.fetchval("select count(*) from foliot.runs") == 0
        assert await sql.fetchval("select count(*) from foliot.history") == 1

    async def test_runs_stored_with_their_audit_entries_are_stored_once(
        self, lossy: tuple[Proxy, Store], sql: Any
    ) -> None:
        proxy, store = lossy
        given = [run() for _ in range(3)]
        entries = [entry_for(r) for r in given]
        proxy.swallow_answer_to("insert into foliot.runs")
        stored = await store.audit_log.with_audit(
            entries, lambda beside: store.run_inserts.insert_runs(given, beside=beside)
        )
        assert proxy.swallowed.is_set()
        assert set(stored) == {r.id for r in given}
        assert await sql.fetchval("select count(*) from foliot.runs") == 3
        told = [tuple(row) for row in await sql.fetch("select id, target from foliot.audit")]
        assert sorted(told) == sorted((entry.id, entry.target) for entry in entries)

    async def test_a_claim_is_in_doubt_and_can_be_recovered(self, lossy: tuple[Proxy, Store]) -> None:
        proxy, store = lossy
        worker = new_id()
        await store.run_inserts.insert_runs([run()])
        proxy.swallow_answer_to("set state = 'running'")
        with pytest.raises(StoreUnavailable) as caught:
            await claim_runs(store, worker, {"q": 10}, ["t"])
        assert caught.value.is_doubtful
        assert len(await store.claims.recover_claims(worker, [])) == 1

    async def test_a_finish_is_written_once(self, lossy: tuple[Proxy, Store], sql: Any) -> None:
        proxy, store = lossy
        worker = new_id()
        await store.run_inserts.insert_runs([run()])
        (claim,) = await claim_runs(store, worker, {"q": 10}, ["t"])
        outcome = Outcome(claim.run_id, claim.token, RunState.SUCCEEDED)
        proxy.swallow_answer_to("delete from foliot.runs")
        assert await store.outcomes.finish_runs(worker, [outcome]) == 0
        assert proxy.swallowed.is_set()
        assert await store.outcomes.count_written(worker, [outcome]) == 1
        assert await sql.fetchval("select count(*) from foliot.history") == 1


async def test_a_missing_server_is_awaited_and_then_reported(events: EventBus) -> None:
    config = msgspec.structs.replace(Config(), database_retry_seconds=0.2)
    with pytest.raises(StoreUnavailable, match="connect"):
        async with Database("postgresql://foliot@127.0.0.1:1/none", config=config, clock=SystemClock(), events=events):
            pass


async def test_a_cancelled_statement_leaves_the_pool_usable(store: Store) -> None:
    for _ in range(30):
        sleeping = asyncio.create_task(store.database.fetch(SLEEP, 5.0))
        await asyncio.sleep(0.005)
        sleeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sleeping
    assert await store.database.fetch_value(PING) == 42


async def test_a_raising_task_factory_does_not_leak_sessions(store: Store) -> None:
    """Jobs share the event loop with the store, and may install a task factory. The pool releases its sessions in tasks
    of the loop."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("no tasks here")

    loop = asyncio.get_running_loop()
    for _ in range(3):
        statements = [own_task(store.database.fetch_value(PING)) for _ in range(Config().database_pool_size)]
        loop.set_task_factory(refuse)
        try:
            await asyncio.wait(statements)
        finally:
            loop.set_task_factory(None)
        assert [statement.result() for statement in statements] == [42] * len(statements)


class TestIdleSessions:
    @pytest.fixture
    async def database(self, database_url: str, events: EventBus) -> AsyncIterator[Database]:
        async with Database(
            database_url, config=Config(database_pool_size=2), clock=SystemClock(), events=events
        ) as database:
            yield database

    async def test_the_next_statement_reuses_the_last_session(self, database: Database) -> None:
        assert await database.fetch_value(PID) == await database.fetch_value(PID)

    async def test_a_long_idle_session_is_not_reused(
        self, database_url: str, fake_clock: FakeClock, events: EventBus, sql: Any
    ) -> None:
        async with Database(database_url, config=Config(), clock=fake_clock, events=events) as database:
            before = await database.fetch_value(PID)
            await fake_clock.advance(IDLE_SECONDS + 1)
            assert await database.fetch_value(PID) != before
            while await sql.fetchval("select exists (select from pg_stat_activity where pid = $1)", before):
                await asyncio.sleep(0.01)

    async def test_a_waiting_caller_gets_a_released_session(self, database: Database, seen: list[Event]) -> None:
        """Callers wait for the pool here. Work after a statement must not keep its session, or they would wait until
        they time out."""
        await asyncio.gather(*(database.fetch(SLEEP, 0.05) for _ in range(7)))
        assert seen == []

    async def test_an_ended_session_makes_room_for_another(self, database: Database, sql: Any) -> None:
        for _ in range(3):
            await terminate_all(sql)
            await asyncio.gather(*(database.fetch(SLEEP, 0.05) for _ in range(2)))
        async with database.transaction(), database.transaction() as session:
            assert await session.fetchval(PING.sql) == 42


def test_the_test_server_does_not_run_on_utc(postgres: PostgresServer) -> None:
    assert asyncio.run(postgres.admin("show timezone"))[0][0] == "America/Los_Angeles"


async def test_statements_are_not_compiled_whatever_the_server_would_do(
    database_url: str, config: Config, sql: Any
) -> None:
    name = await sql.fetchval("select current_database()")
    await sql.execute(f"alter database {name} set jit = on")
    async with open_store(database_url, config=config, clock=SystemClock(), events=EventBus(), part="test") as found:
        assert await found.database.fetch_value(Query("jit", "show jit")) == "off"
