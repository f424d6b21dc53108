"""Brings the schema up to date: forward-only, numbered files, applied under a lock in one transaction.

Two nodes that migrate at once: one waits, then finds nothing to do. A file that was changed after it had been applied
is refused.

A migration says on its first line which processes can work beside it: `-- works beside: 12` means those that know
migration 12 or a newer one. Without that line, only those that know the migration itself can. Old code works on a newer
schema that allows it. A migration that would leave running processes behind is refused, unless it is forced; then these
notice it and stop (`schema_watcher.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from foliot.errors import SchemaError
from foliot.events import EventBus, SchemaMigrated
from foliot.store import queries
from foliot.store.partitions import Partitions
from foliot.store.postgres import MAINTENANCE_SECONDS, Database, Transaction

WORKS_BESIDE = re.compile(r"-- works beside: ([0-9]{1,9})\n")


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


async def migrate(database: Database, *, partitions: Partitions, events: EventBus, is_forced: bool = False) -> int:
    """Applies what is missing; the version that the schema then has. Raises `SchemaError` when processes at work could
    not go on with it, unless it is forced."""
    known, before = known_migrations(), 0

    async def work(within: Transaction) -> bool:
        nonlocal before
        applied = await _apply_missing(within, known, is_forced=is_forced)
        before = max(applied, default=0)
        return any(migration.version not in applied for migration in known)

    # Begun anew when a lock is not to be had at once, as under load: meanwhile nobody waits behind it for longer than
    # for any other lock.
    has_changed = await database.in_transaction("migrate", work, statement_seconds=MAINTENANCE_SECONDS)
    after = max(before, known[-1].version)
    await partitions.create_missing()
    if has_changed:
        events.emit(SchemaMigrated(before, after))
    return after


async def _apply_missing(within: Transaction, known: Sequence[Migration], *, is_forced: bool) -> dict[int, Applied]:
    """What had been applied before."""
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
        await within.execute(queries.Query(migration.name, migration.sql))
        await within.execute(named["record_migration"], migration.version, migration.name, migration.checksum)
    versions, floors = [migration.version for migration in known], [migration.works_beside for migration in known]
    await within.execute(named["declare_migrations"], versions, floors)
    return applied


async def check_schema(database: Database) -> None:
    """Raises unless the schema is one that this code can work with."""
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
                f"migration {migration.version} was applied with other contents than this Foliot ships: do not go on"
            )


def refuse_newer(unknown: Mapping[int, int], newest: int) -> None:
    """Raises for migrations that this code does not know, if one of them asks for more than the newest that it does
    know."""
    if any(works_beside > newest for works_beside in unknown.values()):
        raise SchemaError(
            f"the database's schema is at version {max(unknown)}, newer than the {newest} that this Foliot knows, and needs processes "
            f"that know {max(unknown.values())}: install a newer Foliot, or point it at another database"
        )


async def _refuse_to_leave_behind(within: Transaction, missing: Sequence[Migration]) -> None:
    named, needed = queries.load("processes"), max(migration.works_beside for migration in missing)
    if not await within.fetch_value(named["has_processes"]):
        return
    if left := await within.fetch(named["list_misfits"], needed):
        shown = ", ".join(f"{part} {name} (knows {knows})" for part, name, knows in left[:10]) + (
            ", ..." if len(left) > 10 else ""
        )
        raise SchemaError(
            f"running processes that could not go on with the new schema, which needs processes that know migration {needed}: {shown}. "
            "Nothing was changed. Stop them first; or run `foliot migrate --force`, and they stop by themselves within seconds"
        )


async def _applied(source: Database | Transaction) -> dict[int, Applied]:
    return {
        row[0]: Applied(row[1], row[2]) for row in await source.fetch(queries.load("migrations")["list_migrations"])
    }
