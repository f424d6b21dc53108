"""Stores the audit log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import msgspec

from foliot.errors import StoreUnavailable
from foliot.store import queries
from foliot.store.postgres import Beside, Database, Transaction
from foliot.store.run_lists import Page, page_of

T = TypeVar("T")


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One request and its result."""

    id: UUID
    actor: str
    actor_namespace: str | None
    """The namespace of the actor's token, or `*`. Null for an actor without a token: local, anonymous, database."""
    token_id: str | None
    role: str | None
    namespace: str
    address: str | None
    request_id: str
    method: str
    path: str
    action: str
    target: str | None
    status: int
    code: str | None


class AuditRecord(AuditEntry, frozen=True, kw_only=True):
    """An entry with the time at which it was stored."""

    at: datetime


@dataclass(frozen=True, slots=True)
class AuditFilter:
    since: datetime
    until: datetime
    namespace: str | None = None
    actor: str | None = None
    action: str | None = None
    target: str | None = None
    is_denied: bool = False
    token_id: str | None = None


class AuditLog:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("audit_log")
        self._insert_audit, self._insert_missing_audit = (
            self._queries["insert_audit"],
            self._queries["insert_missing_audit"],
        )

    async def insert_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Inserts each entry once, even if an answer gets lost."""
        try:
            await self._database.execute(self._insert_audit, *self._entries(entries), is_repeatable=False)
        except StoreUnavailable as error:
            if not error.is_doubtful:
                raise
            await self.insert_audit_again(entries)

    async def insert_audit_again(self, entries: Sequence[AuditEntry]) -> None:
        """Inserts the missing entries after running inserts have ended, because PostgreSQL may still be executing a
        statement whose client has disconnected."""

        async def work(within: Transaction) -> None:
            await within.execute(self._queries["lock_audit"])
            await within.execute(self._insert_missing_audit, *self._entries(entries))

        await self._database.in_transaction("insert_audit", work)

    async def insert_audit_within(self, within: Transaction, entries: Sequence[AuditEntry]) -> None:
        """Must follow the audited change: a repetition has then waited for the first attempt, and sees its entries."""
        query = self._insert_missing_audit if within.is_repetition else self._insert_audit
        await within.execute(query, *self._entries(entries))

    async def with_audit(self, entries: Sequence[AuditEntry], write: Callable[[Beside], Awaitable[T]]) -> T:
        """Inserts the entries with the statement that `write` sends, so that both are stored or neither is."""
        first, again = self._insert_audit, self._insert_missing_audit
        arguments = self._entries(entries)
        return await write(Beside(self._database, first, again, *arguments))

    def _entries(self, entries: Sequence[AuditEntry]) -> tuple[datetime | None, str]:
        return self._database.clock.sql_now(), msgspec.json.encode(entries).decode()

    async def list_audit(
        self, wanted: AuditFilter, before: tuple[datetime, UUID], *, limit: int, scan: int
    ) -> Page[AuditRecord, tuple[datetime, UUID]]:
        filters = (wanted.namespace, wanted.actor, wanted.action, wanted.target, wanted.is_denied, wanted.token_id)
        rows = await self._database.fetch(self._queries["list_audit"], wanted.since, *before, limit + 1, scan, *filters)
        items = [AuditRecord(**dict(list(row.items())[3:])) for row in rows if row["id"] is not None]
        last = (rows[0][1], rows[0][2]) if rows[0][0] >= scan else None
        return page_of(items, limit, lambda record: (record.at, record.id), last)
