"""Stores access tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foliot.model.roles import Role
from foliot.model.tokens import Token
from foliot.store import queries
from foliot.store.postgres import Database, Transaction

LIST_MAX = 1000
NAMED_MAX = 10


@dataclass(frozen=True, slots=True)
class NewToken:
    id: str
    hash: bytes
    name: str
    role: Role
    namespace: str
    created_by: str
    created_by_id: str | None
    lives_seconds: float | None


class Tokens:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("tokens")

    async def insert_token(self, new: NewToken, *, within: Transaction | None = None) -> Token | None:
        """Returns None if a token that was not revoked has the name."""
        row = await (within or self._database).fetch_row(
            self._queries["insert_token"],
            id=new.id,
            name=new.name,
            hash=new.hash,
            role=new.role,
            namespace=new.namespace,
            created_by=new.created_by,
            created_by_id=new.created_by_id,
            lives_seconds=new.lives_seconds,
            now=self._database.clock.sql_now(),
        )
        return _token(row) if row else None

    async def find_token(self, token_id: str) -> tuple[bytes, Token] | None:
        row = await self._database.fetch_row(
            self._queries["find_token"], token_id=token_id, now=self._database.clock.sql_now()
        )
        return (row[0], _token(list(row)[1:])) if row else None

    async def list_tokens(self, namespace: str | None) -> list[Token]:
        rows = await self._database.fetch(
            self._queries["list_tokens"], namespace=namespace, now=self._database.clock.sql_now(), limit=LIST_MAX
        )
        return [_token(row) for row in rows]

    async def find_tokens_named(self, reference: str, namespace: str | None) -> list[Token]:
        """Finds up to `NAMED_MAX` tokens by id or name. The token with that id comes first."""
        now = self._database.clock.sql_now()
        return [
            _token(row)
            for row in await self._database.fetch(
                self._queries["find_tokens_named"], reference=reference, namespace=namespace, now=now, limit=NAMED_MAX
            )
        ]

    async def revoke_token(self, token_id: str) -> Token | None:
        row = await self._database.fetch_row(
            self._queries["revoke_token"], token_id=token_id, now=self._database.clock.sql_now()
        )
        return _token(row) if row else None

    async def has_tokens(self) -> bool:
        return bool(await self._database.fetch_value(self._queries["has_tokens"], now=self._database.clock.sql_now()))

    async def note_use(self, token_ids: Sequence[str]) -> None:
        await self._database.execute(self._queries["note_use"], token_ids=token_ids, now=self._database.clock.sql_now())


def _token(row: Any) -> Token:
    values = list(row)
    values[2] = Role(values[2])
    return Token(*values)
