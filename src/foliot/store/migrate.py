"""Brings the schema up to date: forward-only, numbered files, applied under a lock in one transaction.

If two nodes migrate at once, one waits and then finds nothing to do. A file that changed after it was applied is
refused.

Tables are in `migrations/`, functions and triggers in `functions/`. A function file always holds the current source.
The database stores a checksum of each, and `migrate` replaces the functions whose file has changed; after a migration
it replaces all of them. A database that a newer Foliot has migrated keeps its functions.

The first line of a migration says which processes can work beside it: `-- works beside: 12` means processes that know
migration 12 or a newer one. Without that line, only processes that know the migration itself can. Old code works on a
newer schema that allows it. A migration that would leave running processes behind is refused unless it is forced; then
these processes notice it and stop (`schema_watcher.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import msgspec

from foliot.errors import SchemaError
from foliot.events import EventBus, FunctionsReplaced, SchemaMigrated
from foliot.store import queries
from foliot.store.partitions import Partitions
from foliot.store.postgres import MAINTENANCE_SECONDS, Database, Transaction

WORKS_BESIDE = re.compile(r"-- works beside: ([0-9]{1,9})\n")
COMMENT = re.compile(r"^--.*$", re.MULTILINE)
# Functions in the SQL language need the functions that they call; all others are created in the order of their names.
FIRST_FUNCTIONS = ("bare", "namespace_of")


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def works_beside(self) -> int:
        """The newest migration that a process must know to work beside this one."""
        declared = WORKS_BESIDE.match(self.sql)
        return int(declared[1]) if declared else self.version


@dataclass(frozen=True, slots=True)
class Applied:
    checksum: str
    works_beside: int


def known_migrations() -> list[Migration]:
    found = []
    for entry in (resources.files("foliot.store") / "migrations").iterdir():
        if entry.name.endswith(".sql"):
            version, _, name = entry.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(version), name, entry.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.version)


def known_functions() -> dict[str, str]:
    """The source of each function with its trigger, by name, in the order in which they can be created."""
    found = {}
    for entry in (resources.files("foliot.store") / "functions").iterdir():
        if entry.name.endswith(".sql"):
            found[entry.name.removesuffix(".sql")] = entry.read_text(encoding="utf-8")
    return {name: found[name] for name in (*FIRST_FUNCTIONS, *sorted(found.keys() - set(FIRST_FUNCTIONS)))}


async def migrate(database: Database, *, partitions: Partitions, events: EventBus, is_forced: bool = False) -> int:
    """Applies the missing migrations, replaces outdated functions, and returns the version of the schema.

    Raises `SchemaError` if running processes could not work with the new schema, unless it is forced.
    """
    known, before = known_migrations(), 0

    async def work(within: Transaction) -> tuple[bool, list[str]]:
        nonlocal before
        applied = await _apply_missing(within, known, is_forced=is_forced)
        before = max(applied, default=0)
        has_missing = any(migration.version not in applied for migration in known)
        if before > known[-1].version:
            return has_missing, []
        return has_missing, await _replace_functions(within, replaces_all=has_missing)

    # The transaction starts again when it cannot get a lock at once, as under load. So other transactions never queue
    # behind it for longer than for any other lock.
    has_migrated, replaced = await database.in_transaction("migrate", work, statement_seconds=MAINTENANCE_SECONDS)
    after = max(before, known[-1].version)
    await partitions.create_missing()
    if has_migrated:
        events.emit(SchemaMigrated(before, after))
    elif replaced:
        events.emit(FunctionsReplaced(tuple(replaced)))
    return after


async def _apply_missing(within: Transaction, known: Sequence[Migration], *, is_forced: bool) -> dict[int, Applied]:
    """Applies the missing migrations. Returns the migrations that were applied before."""
    named = queries.load("migrations")
    await within.execute(named["lock_migrations"])
    await within.execute(named["create_schema"])
    await within.execute(named["create_migrations"])
    applied = await _applied(within)
    refuse_misfits(applied, known)
    missing = [migration for migration in known if migration.version not in applied]
    if missing and not is_forced:
        await _refuse_to_leave_behind(within, missing)
    for migration in missing:
        if COMMENT.sub("", migration.sql).strip():
            await within.execute(queries.Query(migration.name, migration.sql))
        await within.execute(
            named["record_migration"],
            version=migration.version,
            name=migration.name,
            checksum=migration.checksum,
            works_beside=migration.works_beside,
        )
    return applied


async def _replace_functions(within: Transaction, *, replaces_all: bool) -> list[str]:
    """Creates the functions again whose file has changed, or all of them. Returns their names."""
    named, known = queries.load("migrations"), known_functions()
    checksums = {name: hashlib.sha256(sql.encode()).hexdigest() for name, sql in known.items()}
    stored = {row[0]: row[1] for row in await within.fetch(named["function_checksums"])}
    changed = [name for name in known if replaces_all or stored.get(name) != checksums[name]]
    for name in changed:
        await within.execute(queries.Query(name, known[name]))
    if changed:
        await within.execute(named["record_functions"], functions=msgspec.json.encode(checksums).decode())
    return changed


async def check_schema(database: Database) -> None:
    """Raises `SchemaError` unless this code can work with the schema."""
    known = known_migrations()
    is_there = await database.fetch_value(queries.load("migrations")["has_migrations"])
    applied = await _applied(database) if is_there else {}
    refuse_misfits(applied, known)
    if missing := [migration.version for migration in known if migration.version not in applied]:
        raise SchemaError(f"the database lacks migration {missing[0]} of {known[-1].version}: run `foliot migrate`")


def refuse_misfits(applied: Mapping[int, Applied], known: Sequence[Migration]) -> None:
    versions = {migration.version for migration in known}
    refuse_newer(
        {version: found.works_beside for version, found in applied.items() if version not in versions},
        known[-1].version,
    )
    for migration in known:
        if (found := applied.get(migration.version)) is not None and found.checksum != migration.checksum:
            raise SchemaError(
                f"migration {migration.version} was applied with other contents than this Foliot ships: use the "
                "Foliot that applied it, or another database"
            )


def refuse_newer(unknown: Mapping[int, int], newest: int) -> None:
    """Raises `SchemaError` if an unknown migration requires a newer one than the newest that this code knows."""
    if any(works_beside > newest for works_beside in unknown.values()):
        raise SchemaError(
            f"the database's schema is at version {max(unknown)}, newer than the {newest} that this Foliot knows, "
            f"and needs processes that know {max(unknown.values())}: install a newer Foliot, or point it at another "
            "database"
        )


async def _refuse_to_leave_behind(within: Transaction, missing: Sequence[Migration]) -> None:
    named, needed = queries.load("processes"), max(migration.works_beside for migration in missing)
    if not await within.fetch_value(named["has_processes"]):
        return
    if left := await within.fetch(named["list_misfits"], needed=needed):
        shown = ", ".join(f"{part} {name} (knows {knows})" for part, name, knows in left[:10]) + (
            ", ..." if len(left) > 10 else ""
        )
        raise SchemaError(
            f"the new schema needs processes that know migration {needed}, and these running processes do not: "
            f"{shown}. Nothing was changed. Stop them first; or run `foliot migrate --force`, and they stop by "
            f"themselves within seconds"
        )


async def _applied(source: Database | Transaction) -> dict[int, Applied]:
    rows = await source.fetch(queries.load("migrations")["list_migrations"])
    return {row["version"]: Applied(row["checksum"], row["works_beside"]) for row in rows}
