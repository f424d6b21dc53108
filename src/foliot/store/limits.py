"""Concurrency limits and rate limits: admits held runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from foliot.store import queries
from foliot.store.gatekeeper_lock import gates_locked
from foliot.store.postgres import Database

BATCH = 500
"""The most runs that have just begun to wait, and the most changed keys, in one turn."""
PLACES = 200
"""The most runs of one key that are admitted in one turn. If the key has more room, it gets another turn at once."""
SWEPT = 20
"""How many keys of each kind every turn checks although no change of them is known."""
FORGOTTEN = 1000


@dataclass(frozen=True, slots=True)
class Admission:
    """The result of one turn."""

    queues: list[str] = field(default_factory=list)
    """The queue of each run that became ready."""
    ousted: list[UUID] = field(default_factory=list)
    """The workers whose runs must make room."""
    is_more: bool = False
    """There is more to look at than one turn does."""
    swept: tuple[str, str] = ("", "")
    """The last concurrency key and the last rate key that were swept: the next turn continues after them."""


class Limits:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("limits")

    async def admit_runs(self, swept: tuple[str, str] = ("", "")) -> Admission:
        """Does nothing while another gatekeeper works. `swept` is where the last turn stopped."""
        now = self._database.clock.sql_now()
        async with gates_locked(self._database) as session:
            if session is None:
                return Admission(swept=swept)
            row = await session.fetchrow(self._queries["admit_runs"].sql, now, BATCH, PLACES, SWEPT, *swept)
            queues, keys, is_more, *swept_to = row
            ousted = await session.fetch(self._queries["settle_full_keys"].sql, keys, BATCH) if keys else []
            return Admission(queues, [row[0] for row in ousted], is_more, (swept_to[0], swept_to[1]))

    async def forget_rate_starts(self) -> int:
        """Deletes a batch of starts that no rate counts any more. Returns their number."""
        return await self._database.execute(
            self._queries["forget_rate_starts"], limit=FORGOTTEN, now=self._database.clock.sql_now()
        )
