from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from tools.dump_schema import TARGET, dump

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.errors import SchemaError
from foliot.events import Event, EventBus, SchemaMigrated
from foliot.store import migrate
from foliot.store.store import Store, open_store
from tests.support.server import PostgresServer


@pytest.fixture
async def empty_url(postgres: PostgresServer) -> AsyncIterator[str]:
    name = await postgres.empty()
    yield postgres.url_of(name)
    assert not await postgres.drop(name)


@pytest.fixture
async def empty_store(empty_url: str, events: EventBus) -> AsyncIterator[Store]:
    async with open_store(empty_url, config=Config(), clock=SystemClock(), events=events, part="test") as store:
        yield store


async def test_migrating_an_empty_database_makes_it_usable_and_doing_it_again_changes_nothing(
    empty_store: Store, seen: list[Event]
) -> None:
    with pytest.raises(SchemaError, match="foliot migrate"):
        await empty_store.check_schema()
    version = await empty_store.migrate()
    await empty_store.check_schema()
    assert await empty_store.migrate() == version
    assert seen == [SchemaMigrated(0, version)]


async def test_nodes_that_migrate_at_once_apply_each_migration_once(empty_url: str, events: EventBus, seen: list[Event]) -> None:
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


async def test_a_migration_changed_after_it_was_applied_is_refused(empty_store: Store, empty_url: str) -> None:
    await empty_store.migrate()
    session = await asyncpg.connect(empty_url)
    await session.execute("update foliot.migrations set checksum = 'tampered' where version = 1")
    await session.close()
    with pytest.raises(SchemaError, match="migration 1 was applied with other contents"):
        await empty_store.migrate()


async def test_a_migration_that_fails_half_way_leaves_nothing(empty_store: Store, empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    good = migrate.known_migrations()
    bad = migrate.Migration(good[-1].version + 1, "bad", "create table foliot.half (id bigint); select 1 / 0;")
    monkeypatch.setattr(migrate, "known_migrations", lambda: [*good, bad])
    with pytest.raises(asyncpg.DivisionByZeroError):
        await empty_store.migrate()
    session = await asyncpg.connect(empty_url)
    assert await session.fetchval("select to_regnamespace('foliot') is null")
    await session.close()


def test_versions_have_no_gaps() -> None:
    assert [migration.version for migration in migrate.known_migrations()] == list(range(1, len(migrate.known_migrations()) + 1))


async def test_the_dumped_schema_equals_the_migrations(database_url: str, postgres: PostgresServer) -> None:
    assert await asyncio.to_thread(dump, database_url, Path("/nowhere")) == TARGET.read_text(), "run `make schema`"


async def test_no_column_is_a_four_byte_integer(database_url: str) -> None:
    """Sequences and counters of four bytes run out."""
    session = await asyncpg.connect(database_url)
    small = await session.fetch(
        """
        select table_name, column_name from information_schema.columns
        where table_schema = 'foliot' and data_type in ('integer', 'smallint')
        """
    )
    await session.close()
    assert not small
