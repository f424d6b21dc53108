"""Stores sources, and the messages that could not become jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.source import DeadMessage, IncomingMessage, Source, StoredSource
from foliot.store import queries
from foliot.store.postgres import Database, Record, Transaction

SOURCES_MAX = 100
"""Of a namespace."""
DEAD_MAX = 10_000
"""Dead messages of a source. The oldest make way for new ones."""
BODY_MAX_BYTES = 65_536
"""A dead message is cut to this length."""
TEXT_MAX = 500
HEADERS_MAX = 50
decode_source = msgspec.json.Decoder(Source).decode
decode_headers = msgspec.json.Decoder(dict[str, str]).decode


class Sources:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("sources")

    async def put_source(self, name: str, source: Source, *, only: StoredSource | None = None) -> StoredSource | None:
        """None if the source is not at the version of `only` any more, or else if the namespace has too many."""
        row = await self._database.fetch_row(
            self._queries["put_source"],
            name=name,
            definition=msgspec.json.encode(source).decode(),
            most=SOURCES_MAX,
            now=self._database.clock.sql_now(),
            version=None if only is None else only.version,
            created_at=None if only is None else only.created_at,
        )
        return _source(row) if row else None

    async def get_source(self, name: str) -> StoredSource | None:
        row = await self._database.fetch_row(self._queries["get_source"], name=name)
        return _source(row) if row else None

    async def list_sources(self, namespace: Namespace) -> list[StoredSource]:
        rows = await self._database.fetch(self._queries["list_sources"], namespace=namespace.name, limit=SOURCES_MAX)
        return [_source(row) for row in rows]

    async def delete_source(self, name: str) -> bool:
        return bool(await self._database.fetch_value(self._queries["delete_source"], name=name))

    async def hold_sources(self, owner: UUID, lease_seconds: float, limit: int) -> list[StoredSource]:
        rows = await self._database.fetch(
            self._queries["hold_sources"],
            owner=owner,
            lease_seconds=lease_seconds,
            limit=limit,
            now=self._database.clock.sql_now(),
        )
        return [_source(row) for row in rows]

    async def release_sources(self, owner: UUID) -> None:
        await self._database.execute(self._queries["release_sources"], owner=owner)

    async def note_source(self, name: str, *, is_received: bool = False, error: str | None = None) -> None:
        await self._database.execute(
            self._queries["note_source"],
            name=name,
            is_received=is_received,
            error=error,
            now=self._database.clock.sql_now(),
        )

    async def list_places(self, source: str) -> dict[str, int]:
        return {row[0]: row[1] for row in await self._database.fetch(self._queries["list_places"], source=source)}

    async def store_places(self, within: Transaction, source: str, places: Mapping[str, int]) -> None:
        # In the same order everywhere, so that two nodes do not wait for each other.
        partitions = sorted(places)
        nexts = [places[partition] for partition in partitions]
        await within.execute(self._queries["store_places"], source, partitions, nexts)

    async def bury_messages(
        self, within: Transaction, source: str, messages: Sequence[tuple[str, str, IncomingMessage]]
    ) -> int:
        """Each message has its id and the reason. Returns how many are new."""
        rows = await within.fetch(
            self._queries["bury_messages"],
            source,
            [new_id() for _ in messages],
            [_storable(message_id) for message_id, _, _ in messages],
            [_storable(reason) for _, reason, _ in messages],
            [message.body[:BODY_MAX_BYTES] for _, _, message in messages],
            [_headers(message) for _, _, message in messages],
            self._database.clock.sql_now(),
        )
        if rows:
            await within.execute(self._queries["drop_old_messages"], source, DEAD_MAX)
        return len(rows)

    async def list_dead_messages(self, source: str, *, before: UUID | None, limit: int) -> list[DeadMessage]:
        rows = await self._database.fetch(
            self._queries["list_dead_messages"], source=source, before=before, limit=limit
        )
        return [_dead(row) for row in rows]

    async def get_dead_message(self, source: str, message_id: UUID) -> DeadMessage | None:
        row = await self._database.fetch_row(self._queries["get_dead_message"], source=source, id=message_id)
        return _dead(row) if row else None

    async def delete_dead_message(self, source: str, message_id: UUID) -> bool:
        return bool(
            await self._database.fetch_value(self._queries["delete_dead_message"], source=source, id=message_id)
        )


def _source(row: Record) -> StoredSource:
    values = list(row)
    values[2] = decode_source(values[2])
    return StoredSource(*values)


def _storable(text: str) -> str:
    # PostgreSQL stores no NUL in a text.
    return text.replace("\0", "")[:TEXT_MAX]


def _headers(message: IncomingMessage) -> str:
    few = list(message.headers.items())[:HEADERS_MAX]
    return msgspec.json.encode({_storable(name): _storable(value) for name, value in few}).decode()


def _dead(row: Record) -> DeadMessage:
    values = list(row)
    values[5] = decode_headers(values[5])
    return DeadMessage(*values)
