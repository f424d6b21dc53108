"""Expands maps into the runs of their items."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from foliot.model.priority import aging_microseconds
from foliot.store import queries
from foliot.store.postgres import Database, Transaction
from foliot.store.workflows import Family, Workflows

ADOPTED_MAX = 100_000
"""The most items that a rerun repeats one by one; a map with more unsuccessful items starts from the beginning."""


class Maps:
    def __init__(self, database: Database, *, workflows: Workflows, aging_seconds: float) -> None:
        self._database = database
        self._workflows = workflows
        self._aging = aging_microseconds(aging_seconds)
        self._queries = queries.load("maps")

    async def expand_map(self, run_id: UUID, token: int, worker_id: UUID, family: Family) -> bool:
        """Turns the run of an attempt into a map, and creates its first items. A rerun takes over the items that
        succeeded. Returns False if the run is no longer this worker's."""

        async def work(within: Transaction) -> bool:
            if not await self._workflows.expand_run(within, run_id, token, worker_id):
                return False
            adoptable = await self.find_adoptable(within, run_id, family)
            if adoptable is not None and await self.adopt_items(within, adoptable, run_id, family):
                await self.repeat_items(within, adoptable)
                await self.refill(within, adoptable)
                return True
            await self._workflows.insert_parent(within, run_id, family)
            await self.refill(within, run_id)
            return True

        return await self._database.in_transaction("expand_map", work)

    async def refill(self, within: Transaction, map_id: UUID) -> None:
        await within.execute(self._queries["refill"], map_id=map_id, now=self._now())

    async def find_adoptable(self, within: Transaction, run_id: UUID, family: Family) -> UUID | None:
        row = await within.fetch_row(
            self._queries["find_adoptable"], run_id=run_id, template=family.template, items=family.items
        )
        return row[0] if row and row[1] <= ADOPTED_MAX else None

    async def adopt_items(self, within: Transaction, map_id: UUID, run_id: UUID, family: Family) -> bool:
        return (
            await within.fetch_value(
                self._queries["adopt_items"],
                map_id=map_id,
                run_id=run_id,
                on_failure=family.on_failure,
                capacity=family.capacity,
            )
            is not None
        )

    async def repeat_items(self, within: Transaction, map_id: UUID) -> None:
        await within.execute(self._queries["repeat_items"], map_id=map_id, aging=self._aging, now=self._now())

    def _now(self) -> datetime | None:
        return self._database.clock.sql_now()
