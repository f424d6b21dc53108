"""Brings the schema up to date: forward-only, numbered files, applied under a lock in one transaction.

Two nodes that migrate at once: one waits, then finds nothing to do. A schema newer than this code, or a file that was changed after it had
been applied, is refused: old code must not write into tables that it does not know.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

from foliot.errors import SchemaError
from foliot.events import EventBus, SchemaMigrated
from foliot.store import queries
from foliot.store.partitions import Partitions
from foliot.store.postgres import Database


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def known_migrations() -> list[Migration]:
    found = []
    for entry in (resources.files("foliot.store") / "migrations").iterdir():
        if entry.name.endswith(".sql"):
            version, _, name = entry.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(version), name, entry.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.version)


async def migrate(database: Database, *, partitions: Partitions, events: EventBus) -> int:
    """Applies what is missing; the version that the schema then has."""
    named, known = queries.load("migrations"), known_migrations()
    async with database.transaction() as session:
        await session.execute(named["lock_migrations"].sql)
        await session.execute(named["create_schema"].sql)
        await session.execute(named["create_migrations"].sql)
        applied = {row[0]: row[1] for row in await session.fetch(named["list_migrations"].sql)}
        refuse_misfits(applied, known)
        for migration in known:
            if migration.version not in applied:
                await session.execute(migration.sql)
                await session.execute(named["record_migration"].sql, migration.version, migration.name, migration.checksum)
    before, after = max(applied, default=0), known[-1].version
    await partitions.create_missing()
    if before != after:
        events.emit(SchemaMigrated(before, after))
    return after


async def check_schema(database: Database) -> None:
    """Raises unless the schema is exactly the one that this code expects."""
    named, known = queries.load("migrations"), known_migrations()
    is_there = await database.fetch_value(named["has_migrations"])
    applied = {row[0]: row[1] for row in await database.fetch(named["list_migrations"])} if is_there else {}
    refuse_misfits(applied, known)
    if missing := [migration.version for migration in known if migration.version not in applied]:
        raise SchemaError(f"the database lacks migration {missing[0]} of {known[-1].version}: run `foliot migrate`")


def refuse_misfits(applied: dict[int, str], known: list[Migration]) -> None:
    newest = known[-1].version
    if applied and max(applied) > newest:
        raise SchemaError(
            f"the database's schema is at version {max(applied)}, newer than the {newest} that this Foliot knows: "
            "install a newer Foliot, or point it at another database"
        )
    for migration in known:
        if applied.get(migration.version, migration.checksum) != migration.checksum:
            raise SchemaError(f"migration {migration.version} was applied with other contents than this Foliot ships: do not go on")
