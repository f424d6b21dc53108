from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tools.dump_schema import TARGET, dump

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.errors import SchemaError
from foliot.events import Event, EventBus, FunctionsReplaced, SchemaIsTooNew, SchemaMigrated, StoreInterrupted
from foliot.store import migrate, queries
from foliot.store.schema_watcher import SchemaWatcher
from foliot.store.store import Store, open_store
from tests.support.server import PostgresServer
from tests.support.waiting import until


@pytest.fixture
async def empty_url(postgres: PostgresServer) -> AsyncIterator[str]:
    name = await postgres.empty()
    yield postgres.url_of(name)
    assert not await postgres.drop(name)


@pytest.fixture
async def empty_store(empty_url: str, events: EventBus) -> AsyncIterator[Store]:
    async with open_store(empty_url, config=Config(), clock=SystemClock(), events=events, part="test") as store:
        yield store


async def test_migrating_an_empty_database_works_and_repeating_it_changes_nothing(
    empty_store: Store, seen: list[Event]
) -> None:
    with pytest.raises(SchemaError, match="foliot migrate"):
        await empty_store.check_schema()
    version = await empty_store.migrate()
    await empty_store.check_schema()
    assert await empty_store.migrate() == version
    assert seen == [SchemaMigrated(0, version)]


async def test_concurrent_migrations_apply_each_one_once(empty_url: str, events: EventBus, seen: list[Event]) -> None:
    async def node() -> None:
        async with open_store(empty_url, config=Config(), clock=SystemClock(), events=events, part="test") as store:
            await store.migrate()

    await asyncio.gather(*(node() for _ in range(6)))
    assert len([event for event in seen if isinstance(event, SchemaMigrated)]) == 1
    session = await asyncpg.connect(empty_url)
    assert await session.fetchval("select count(*) from foliot.migrations") == len(migrate.known_migrations())
    await session.close()


async def test_a_schema_newer_than_the_code_is_refused(empty_store: Store, empty_url: str) -> None:
    await empty_store.migrate()
    session = await asyncpg.connect(empty_url)
    await session.execute("insert into foliot.migrations (version, name, checksum) values (9999, 'future', 'x')")
    await session.close()
    for attempt in (empty_store.migrate, empty_store.check_schema):
        with pytest.raises(SchemaError, match="9999, newer than"):
            await attempt()


def pretended(version: int, works_beside: int | None) -> migrate.Migration:
    """A migration of a future Foliot."""
    first = "" if works_beside is None else f"-- works beside: {works_beside}\n"
    return migrate.Migration(version, "future", f"{first}create table foliot.future (id bigint);")


def test_each_migration_declares_compatible_processes() -> None:
    newer = [migration for migration in migrate.known_migrations() if migration.version > 1]
    silent = [migration.version for migration in newer if not migrate.WORKS_BESIDE.match(migration.sql)]
    assert not silent, "begin with a line such as `-- works beside: 1`; the rules are in docs/deploying.md"
    assert all(0 < migration.works_beside <= migration.version for migration in newer)


async def test_old_code_works_only_on_compatible_newer_schemas(
    empty_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrate.known_migrations()
    newest = known[-1].version
    for version, works_beside in ((newest + 1, newest), (newest + 2, newest + 1), (newest + 3, None)):
        newer = [*known, pretended(version, works_beside)]
        monkeypatch.setattr(migrate, "known_migrations", partial(list, newer))
        await empty_store.migrate()
        assert await empty_store.database.fetch_value(
            queries.Query("", f"select max(version) = {version} from foliot.migrations")
        )
        await empty_store.check_schema()
        monkeypatch.setattr(migrate, "known_migrations", lambda: known)
        if works_beside == newest:
            await empty_store.check_schema()
            assert await empty_store.migrate() == version, "there is nothing to do"
        else:
            for attempt in (empty_store.migrate, empty_store.check_schema):
                with pytest.raises(SchemaError, match="newer than"):
                    await attempt()
        undo = f"delete from foliot.migrations where version = {version}"
        await empty_store.database.execute(queries.Query("", undo))
        await empty_store.database.command("", "drop table foliot.future")


async def test_a_migration_that_would_leave_a_process_behind_is_refused_unless_forced(
    store: Store, events: EventBus, monkeypatch: pytest.MonkeyPatch, seen: list[Event]
) -> None:
    known, asked = migrate.known_migrations(), asyncio.Event()
    newest = known[-1].version
    watcher = SchemaWatcher(store.database, "worker", clock=SystemClock(), events=events, on_misfit=asked.set)
    await watcher.start()
    try:
        monkeypatch.setattr(migrate, "known_migrations", lambda: [*known, pretended(newest + 1, newest + 1)])
        with pytest.raises(SchemaError, match=f"worker .*knows {newest}.*Nothing was changed"):
            await store.migrate()
        assert await store.database.fetch_value(queries.Query("", "select to_regclass('foliot.future') is null"))
        assert not asked.is_set()
        with events.expect(SchemaIsTooNew) as noticed:
            await store.migrate(is_forced=True)
            watcher.wake()
            assert await noticed == SchemaIsTooNew(newest + 1, newest + 1, newest)
        assert asked.is_set()
        assert watcher.misfit is not None
    finally:
        await watcher.stop()
    assert await store.database.fetch_value(queries.Query("", "select count(*) from foliot.processes")) == 0
    monkeypatch.setattr(migrate, "known_migrations", lambda: known)
    with pytest.raises(SchemaError, match="newer than"):
        await SchemaWatcher(store.database, "worker", clock=SystemClock(), events=events, on_misfit=asked.set).start()


async def test_a_dead_process_does_not_block_a_migration(
    store: Store, sql: Any, events: EventBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrate.known_migrations()
    await sql.execute(
        "insert into foliot.processes (id, part, name, knows, started_at, expires_at)"
        " values (gen_random_uuid(), 'worker', 'dead', 1, now(), now() - interval '1 second')"
    )
    monkeypatch.setattr(migrate, "known_migrations", lambda: [*known, pretended(known[-1].version + 1, None)])
    assert await store.migrate() == known[-1].version + 1


async def test_a_process_that_starts_during_a_migration_sees_it(
    store: Store, sql: Any, events: EventBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = migrate.known_migrations()[-1].version
    watcher = SchemaWatcher(store.database, "worker", clock=SystemClock(), events=events, on_misfit=lambda: None)
    async with sql.transaction():
        await sql.execute(queries.load("migrations")["lock_migrations"].sql)
        starting = asyncio.create_task(watcher.start())
        await until(lambda: sql.fetchval("select count(*) from pg_locks where not granted and locktype = 'advisory'"))
        assert await sql.fetchval("select count(*) from foliot.processes") == 0
        await sql.execute(
            "insert into foliot.migrations (version, name, checksum) values ($1, 'future', 'x')", newest + 1
        )
    with pytest.raises(SchemaError, match="newer than"):
        await starting
    assert await sql.fetchval("select count(*) from foliot.processes") == 0


async def test_a_migration_waits_for_a_busy_lock(store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrate.known_migrations()
    newest = known[-1].version
    added = migrate.Migration(
        newest + 1, "column", f"-- works beside: {newest}\nalter table foliot.runs add column future text;"
    )
    monkeypatch.setattr(migrate, "known_migrations", lambda: [*known, added])
    with store.events.expect(StoreInterrupted) as interrupted:
        async with sql.transaction():
            await sql.execute("lock table foliot.runs in access share mode")
            migrating = asyncio.create_task(store.migrate())
            await interrupted
    assert await migrating == newest + 1


async def test_a_migration_changed_after_it_was_applied_is_refused(empty_store: Store, empty_url: str) -> None:
    await empty_store.migrate()
    session = await asyncpg.connect(empty_url)
    await session.execute("update foliot.migrations set checksum = 'tampered' where version = 1")
    await session.close()
    with pytest.raises(SchemaError, match="migration 1 was applied with other contents"):
        await empty_store.migrate()


async def test_a_failed_migration_leaves_nothing(
    empty_store: Store, empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = migrate.known_migrations()
    bad = migrate.Migration(good[-1].version + 1, "bad", "create table foliot.half (id bigint); select 1 / 0;")
    monkeypatch.setattr(migrate, "known_migrations", lambda: [*good, bad])
    with pytest.raises(asyncpg.DivisionByZeroError):
        await empty_store.migrate()
    session = await asyncpg.connect(empty_url)
    assert await session.fetchval("select to_regnamespace('foliot') is null")
    await session.close()


DEFINITIONS = """
    select p.proname as name, pg_get_functiondef(p.oid) as source from pg_proc p
    where p.pronamespace = 'foliot'::regnamespace
    union all
    select t.tgname, pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = 'foliot'::regnamespace and not t.tgisinternal and t.tgparentid = 0
    order by 1
"""
CREATED = re.compile(r"^create or replace (?:function foliot\.|trigger )(\w+)", re.MULTILINE)


async def test_the_database_has_exactly_the_functions_and_triggers_of_the_files(sql: Any) -> None:
    functions = migrate.known_functions()
    before = await sql.fetch(DEFINITIONS)
    created = [name for source in functions.values() for name in CREATED.findall(source)]
    # The table of jobs has a column computed by `due_bucket`, so the migration creates both.
    assert [row["name"] for row in before] == sorted([*created, "due_bucket"])
    assert all(f"function foliot.{name}(" in source for name, source in functions.items())
    for source in functions.values():
        await sql.execute(source)
    assert await sql.fetch(DEFINITIONS) == before


async def test_a_changed_function_is_replaced_without_a_migration(
    store: Store, sql: Any, seen: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrate.known_functions()
    changed = known["bare"].replace("'^.*/', ''", "'^.*/', 'changed '")
    assert changed != known["bare"]
    seen.clear()
    monkeypatch.setattr(migrate, "known_functions", lambda: known | {"bare": changed})
    await store.migrate()
    assert await sql.fetchval("select foliot.bare('team/job')") == "changed job"
    await store.migrate()
    assert seen == [FunctionsReplaced(("bare",))], "and the second time nothing has changed"


async def test_functions_of_a_newer_foliot_stay(store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    known, newest = migrate.known_functions(), migrate.known_migrations()[-1].version
    await sql.execute(
        "insert into foliot.migrations (version, name, checksum, works_beside) values ($1, 'future', 'x', $2)",
        newest + 1,
        newest,
    )
    monkeypatch.setattr(migrate, "known_functions", lambda: known | {"bare": known["bare"].replace("''", "'old '")})
    await store.migrate()
    assert await sql.fetchval("select foliot.bare('team/job')") == "job"


async def test_a_migration_restates_the_functions(store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrate.known_migrations()
    before = await sql.fetch(DEFINITIONS)
    await sql.execute("create or replace function foliot.bare(qualified text) returns text language sql return 'old'")
    await store.migrate()
    assert await sql.fetch(DEFINITIONS) != before, "without a new migration there is nothing to do"
    added = migrate.Migration(known[-1].version + 1, "functions", f"-- works beside: {known[-1].version}\n")
    monkeypatch.setattr(migrate, "known_migrations", lambda: [*known, added])
    await store.migrate()
    assert await sql.fetch(DEFINITIONS) == before


def test_versions_have_no_gaps() -> None:
    assert [migration.version for migration in migrate.known_migrations()] == list(
        range(1, len(migrate.known_migrations()) + 1)
    )


async def test_the_dumped_schema_equals_the_migrations(database_url: str, postgres: PostgresServer) -> None:
    assert await asyncio.to_thread(dump, database_url, Path("/nowhere")) == TARGET.read_text(), "run `make schema`"


async def test_no_column_is_a_four_byte_integer(database_url: str) -> None:
    """Four-byte sequences and counters overflow."""
    session = await asyncpg.connect(database_url)
    small = await session.fetch(
        """
        select table_name, column_name from information_schema.columns
        where table_schema = 'foliot' and data_type in ('integer', 'smallint')
        """
    )
    await session.close()
    assert not small
