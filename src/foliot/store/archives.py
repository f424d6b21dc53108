"""Reads history in the order of time for the archive, and keeps how far each kind is archived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID

from foliot.model.archive import TABLE_OF_KIND, ArchivedObject, Kind, Place, day_start
from foliot.model.namespace import Namespace
from foliot.store import queries
from foliot.store.arrays import columns
from foliot.store.postgres import Database, Record

PAGE_ROWS = 1_000
PAGE_BYTES = 8_388_608
DAYS_FOUND = 10


@dataclass(frozen=True, slots=True)
class ArchiveState:
    kind: Kind
    location: str
    at: datetime
    """Rows before this time are archived."""
    is_running: bool
    """A process holds the archive."""
    failing_since: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class ArchivedDay:
    day: date
    location: str


class Archives:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = named = queries.load("archives")
        self._pages: dict[Kind, queries.Query] = {
            "runs": named["archive_runs"],
            "attempts": named["archive_attempts"],
            "ticks": named["archive_ticks"],
            "audit": named["archive_audit"],
        }

    async def horizon(self, kind: Kind, hold_seconds: float) -> datetime:
        """Returns a time before which no further row will appear."""
        found: datetime = await self._database.fetch_value(
            self._queries["archive_horizon"],
            relation=f"foliot.{TABLE_OF_KIND[kind]}",
            now=self._database.clock.sql_now(),
            hold_seconds=hold_seconds,
        )
        return found

    async def list_rows(self, kind: Kind, after: Place, until: datetime) -> list[Record]:
        """A page of rows behind a place. Each begins with its time, its key and its namespace."""
        query = self._pages[kind]
        bounds = {
            "after_at": after[0], "after_id": after[1], "until": until, "limit": PAGE_ROWS, "bytes": PAGE_BYTES
        }  # fmt: skip
        return await self._database.fetch(query, *(bounds[name] for name in query.parameters))

    async def take_archives(
        self, starts: Mapping[Kind, datetime], location: str, owner: UUID, lease_seconds: float
    ) -> dict[Kind, Place]:
        """Returns the place of each kind; nothing while another process archives. `starts` are the places of kinds that
        are new."""
        rows = await self._database.fetch(
            self._queries["take_archives"],
            kinds=list(starts),
            starts=list(starts.values()),
            location=location,
            owner=owner,
            lease_seconds=lease_seconds,
            now=self._database.clock.sql_now(),
        )
        return {row[0]: (row[1], row[2]) for row in rows}

    async def release_archives(self, owner: UUID) -> None:
        await self._database.execute(self._queries["release_archives"], owner=owner)

    async def note_archive_failure(self, owner: UUID, error: str) -> None:
        now = self._database.clock.sql_now()
        await self._database.execute(self._queries["note_archive_failure"], owner=owner, error=error, now=now)

    async def note_archive_success(self, owner: UUID) -> None:
        await self._database.execute(self._queries["note_archive_success"], owner=owner)

    async def advance_archive(
        self, kind: Kind, owner: UUID, place: Place, day: date, objects: Sequence[ArchivedObject]
    ) -> bool:
        """Returns False if the archive belongs to another process by now."""
        names, namespaces, rows, sizes, sums, firsts, lasts = columns(
            [(o.name, o.namespace, o.rows, o.bytes, o.sha256, o.first_id, o.last_id) for o in objects], 7
        )
        return bool(
            await self._database.fetch_value(
                self._queries["advance_archive"],
                kind=kind,
                owner=owner,
                at=place[0],
                id=place[1],
                day=day,
                names=names,
                namespaces=namespaces,
                rows=rows,
                bytes=sizes,
                sha256s=sums,
                first_ids=firsts,
                last_ids=lasts,
            )
        )

    async def list_archived_objects(self, kind: Kind, day: date) -> list[ArchivedObject]:
        rows = await self._database.fetch(self._queries["list_archived_objects"], kind=kind, day=day)
        return [ArchivedObject(*row) for row in rows]

    async def confirm_archived_day(self, kind: Kind, owner: UUID, day: date) -> bool:
        return bool(
            await self._database.fetch_value(
                self._queries["confirm_archived_day"],
                kind=kind,
                owner=owner,
                day=day,
                next_day=day_start(day + timedelta(days=1)),
            )
        )

    async def list_archives(self) -> list[ArchiveState]:
        rows = await self._database.fetch(self._queries["list_archives"], now=self._database.clock.sql_now())
        return [ArchiveState(*row) for row in rows]

    async def archived_rows(self, kind: Kind, day: date) -> int:
        return int(await self._database.fetch_value(self._queries["archived_rows"], kind=kind, day=day))

    async def reopen_archive(self, kind: Kind, day: date) -> None:
        await self._database.execute(self._queries["reopen_archive"], kind=kind, at=day_start(day))

    async def find_archived(
        self, namespace: Namespace, run_id: UUID, from_day: date, before: date
    ) -> list[ArchivedDay]:
        """The archived days on which a run may have ended."""
        rows = await self._database.fetch(
            self._queries["find_archived"],
            namespace=namespace.name,
            run_id=run_id,
            from_day=from_day,
            before=before,
            limit=DAYS_FOUND,
        )
        return [ArchivedDay(*row) for row in rows]

    async def forget_archives(self) -> None:
        await self._database.execute(self._queries["forget_archives"])
