"""Cancels runs, and the children of cancelled workflows and maps."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from foliot.store import queries
from foliot.store.hints import ALL_QUEUES_TOPIC, HintSender, worker_topic
from foliot.store.postgres import Database

BATCH = 1000


class Cancellation:
    def __init__(self, database: Database, *, hints: HintSender) -> None:
        self._database = database
        self._hints = hints
        self._queries = queries.load("cancellation")

    async def end_cancelled(self) -> int:
        """Ends marked runs that no worker holds, with all their children, and hints the workers that hold the others.

        Returns the number of runs ended.
        """
        holders = await self.spread_cancels()
        closed = await self.close_cancelled(BATCH)
        holders.update(worker_id for worker_id in closed.values() if worker_id is not None)
        self._hints.send(worker_topic(worker_id) for worker_id in holders)
        if closed:
            # Steps that always run may have waited for one of these.
            self._hints.send([ALL_QUEUES_TOPIC])
        return len(closed)

    async def mark_cancelled(
        self, run_ids: Sequence[UUID], message: str, *, is_forced: bool
    ) -> dict[UUID, UUID | None]:
        """Marks the live runs among these. Returns them with the workers that hold them."""
        rows = await self._database.fetch(
            self._queries["mark_cancelled"], ids=run_ids, message=message, is_forced=is_forced
        )
        return {row[0]: row[1] for row in rows}

    async def spread_cancels(self) -> set[UUID]:
        """Marks all descendants of marked workflows and maps. Returns the workers that hold some of them."""
        holders: set[UUID] = set()
        while rows := await self._database.fetch(self._queries["spread_cancels"]):
            holders |= {row[0] for row in rows if row[0] is not None}
        return holders

    async def close_cancelled(self, limit: int) -> dict[UUID, UUID | None]:
        """Ends a batch of marked runs. Returns them with the workers that held them."""
        rows = await self._database.fetch(
            self._queries["close_cancelled"], limit=limit, now=self._database.clock.sql_now()
        )
        return {row[0]: row[1] for row in rows}
