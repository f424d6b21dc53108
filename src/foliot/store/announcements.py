"""Announcements: the tasks of an app, with their schemas, each set under a hash of the whole."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from foliot.store import queries
from foliot.store.postgres import Database

ANNOUNCEMENT_MAX_BYTES = 4_194_304


class TaskVersion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A task as one version of the code has it."""

    schema: dict[str, Any] | None = None
    """The JSON Schema of its payload. None: unknown."""
    description: str = ""
    """The first line of its documentation."""


class Announcement(msgspec.Struct, frozen=True):
    hash: str
    is_live: bool
    """A live worker runs this code."""
    tasks: Mapping[str, TaskVersion] | None
    """By qualified name. None: the caller knows them, or they are lost."""


def announcement_of(tasks: Mapping[str, TaskVersion]) -> tuple[str, str]:
    """The hash and the text of an announcement. An app with more schemas than fit has none: its workers check payloads
    alone."""
    text = msgspec.json.encode(tasks)
    if len(text) > ANNOUNCEMENT_MAX_BYTES:
        text = msgspec.json.encode({name: TaskVersion(description=one.description) for name, one in tasks.items()})
    return hashlib.sha256(text).hexdigest()[:32], text.decode()


decode_tasks = msgspec.json.Decoder(dict[str, TaskVersion]).decode


class Announcements:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("announcements")

    async def put_announcement(self, announcement: str, tasks: str) -> None:
        """Stores what an app says about its tasks, and forgets what no worker says any more."""
        now = self._database.clock.sql_now()
        await self._database.execute(self._queries["put_announcement"], hash=announcement, tasks=tasks, now=now)
        await self._database.execute(self._queries["forget_announcements"], now=now)

    async def list_announcements(self, known: Collection[str] = ()) -> list[Announcement]:
        """`known`: hashes whose contents the caller has."""
        rows = await self._database.fetch(
            self._queries["list_announcements"], known=list(known), now=self._database.clock.sql_now()
        )
        return [Announcement(row[0], row[1], None if row[2] is None else decode_tasks(row[2])) for row in rows]
