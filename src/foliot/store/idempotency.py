"""Idempotency keys: stores the answer to a request with its key, in the transaction that carries the request out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from foliot.errors import Conflict
from foliot.model.namespace import bare_key
from foliot.store import queries
from foliot.store.postgres import Database, Transaction

LOOKS = 10
"""A key may expire between two statements, and another request may take it."""
BATCH = 1000


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    text: str
    """The JSON of the first answer."""
    is_new: bool


class Idempotency:
    def __init__(self, database: Database, *, keep_seconds: float) -> None:
        self._database = database
        self._keep_seconds = float(keep_seconds)
        self._queries = queries.load("idempotency")

    async def once(self, key: str, fingerprint: str, work: Callable[[Transaction], Awaitable[str]]) -> KeptAnswer:
        """The answer of `work`, or its earlier answer for this key. Raises `Conflict` when the key came with another
        request."""

        async def attempt(within: Transaction) -> KeptAnswer:
            for _ in range(LOOKS):
                if await self.take_key(within, key, fingerprint):
                    text = await work(within)
                    await self.keep_answer(within, key, text)
                    return KeptAnswer(text, is_new=True)
                if (found := await self.find_answer(key, fingerprint, within=within)) is not None:
                    return found
            raise Conflict(f"idempotency_key: {bare_key(key)!r} is expiring just now; try again")

        return await self._database.in_transaction("once", attempt)

    async def take_key(self, within: Transaction, key: str, fingerprint: str) -> bool:
        arguments = (key, fingerprint, self._keep_seconds, self._database.clock.sql_now())
        return bool(await within.fetch_value(self._queries["take_key"], *arguments))

    async def take_keys(
        self, within: Transaction, keys: Sequence[str], fingerprint: str, *, keep_seconds: float
    ) -> set[str]:
        """Returns those of different keys that are new."""
        rows = await within.fetch(
            self._queries["take_keys"], list(keys), fingerprint, keep_seconds, self._database.clock.sql_now()
        )
        return {row[0] for row in rows}

    async def keep_answer(self, within: Transaction, key: str, text: str) -> None:
        await within.execute(self._queries["keep_answer"], key, text)

    async def find_answer(self, key: str, fingerprint: str, *, within: Transaction | None = None) -> KeptAnswer | None:
        row = await (within or self._database).fetch_row(
            self._queries["find_answer"], key, self._database.clock.sql_now()
        )
        if row is None:
            return None
        if row[0] != fingerprint:
            raise Conflict(
                f"idempotency_key: {bare_key(key)!r} belongs to another request; a new request needs a new key"
            )
        return KeptAnswer(row[1], is_new=False)

    async def forget_answers(self) -> int:
        """Deletes a batch of expired keys. Returns their number."""
        return await self._database.execute(self._queries["forget_answers"], BATCH, self._database.clock.sql_now())
