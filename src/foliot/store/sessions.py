"""Stores sessions of browsers."""

from __future__ import annotations

from datetime import datetime

from foliot.model.roles import Role
from foliot.model.session import IDLE, LIFE
from foliot.model.tokens import Token
from foliot.store import queries
from foliot.store.postgres import Database

FORGOTTEN = 1000
NAMES_MAX = 10_000


class Sessions:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("sessions")

    async def insert_session(self, session_hash: bytes, token_id: str) -> None:
        await self._database.execute(
            self._queries["insert_session"],
            hash=session_hash,
            token_id=token_id,
            life_seconds=LIFE.total_seconds(),
            now=self._database.clock.sql_now(),
        )

    async def find_session(self, session_hash: bytes) -> tuple[Token, datetime] | None:
        """The token, which is valid only as long as the session is, and the end of the session."""
        row = await self._database.fetch_row(
            self._queries["find_session"],
            hash=session_hash,
            idle_seconds=IDLE.total_seconds(),
            now=self._database.clock.sql_now(),
        )
        if row is None:
            return None
        *values, ends_at = row
        values[2] = Role(values[2])
        return Token(*values), ends_at

    async def note_session_use(self, session_hash: bytes) -> None:
        await self._database.execute(
            self._queries["note_session_use"], hash=session_hash, now=self._database.clock.sql_now()
        )

    async def delete_session(self, session_hash: bytes) -> bool:
        return bool(await self._database.execute(self._queries["delete_session"], hash=session_hash))

    async def forget_sessions(self) -> int:
        """The number forgotten, at most a batch."""
        return await self._database.execute(
            self._queries["forget_sessions"], limit=FORGOTTEN, now=self._database.clock.sql_now()
        )

    async def list_namespaces(self) -> list[str]:
        rows = await self._database.fetch(self._queries["list_namespaces"], limit=NAMES_MAX)
        return [row[0] for row in rows]
