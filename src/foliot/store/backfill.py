"""Stores runs for ticks of the past."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from uuid import UUID

from foliot.model.priority import aging_microseconds
from foliot.model.schedule import Neighbours
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database, Transaction

NO_NEIGHBOURS: Mapping[UUID, Neighbours] = MappingProxyType({})


class Backfill:
    def __init__(self, database: Database, *, aging_seconds: float) -> None:
        self._database = database
        self._aging = aging_microseconds(aging_seconds)
        self._queries = queries.load("backfill")

    async def insert_backfill(
        self,
        job_id: UUID,
        ticks: Mapping[UUID, datetime],
        state: RunState,
        between: Mapping[UUID, Neighbours] = NO_NEIGHBOURS,
    ) -> list[datetime]:
        """Returns the ticks that became runs. `ticks` maps the id of each run to its tick, and `between` to the ticks
        before and after that."""
        neighbours = [between.get(run_id, (None, None)) for run_id in ticks]

        async def work(within: Transaction) -> list[datetime]:
            made = {
                row[0]
                for row in await within.fetch(
                    self._queries["insert_backfill"],
                    job_id=job_id,
                    run_ids=list(ticks),
                    ticks=list(ticks.values()),
                    state=state,
                    aging=self._aging,
                    now=self._database.clock.sql_now(),
                    previous_ticks=[previous for previous, _ in neighbours],
                    following_ticks=[following for _, following in neighbours],
                )
            }
            ids = [run_id for run_id, tick in ticks.items() if tick in made]
            removed = await within.fetch(self._queries["remove_fired"], job_id=job_id, ticks=list(made), run_ids=ids)
            return list(made - {row[0] for row in removed})

        return await self._database.in_transaction("insert_backfill", work)

    async def find_fired(self, job_id: UUID, ticks: Sequence[datetime]) -> set[datetime]:
        """Returns the ticks among these that have a run."""
        return {row[0] for row in await self._database.fetch(self._queries["find_fired"], job_id=job_id, ticks=ticks)}
