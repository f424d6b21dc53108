"""Runs that wait for other runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from foliot.errors import Invalid
from foliot.model.ids import not_finished_before
from foliot.model.priority import aging_microseconds
from foliot.model.run import NewRun
from foliot.store import queries
from foliot.store.arrays import array_text, columns
from foliot.store.postgres import Database, Transaction


class Dependencies:
    def __init__(self, database: Database, *, aging_seconds: float) -> None:
        self._database = database
        self._aging = aging_microseconds(aging_seconds)
        self._queries = queries.load("dependencies")

    async def insert_dependencies(self, within: Transaction, edges: Sequence[tuple[UUID, UUID]]) -> None:
        """Each edge goes from an upstream run to the run that waits for it."""
        if edges:
            await within.execute(
                self._queries["insert_dependencies"], *(array_text(column) for column in columns(edges, 2))
            )

    async def insert_dependent(self, run: NewRun, upstream_ids: Sequence[UUID]) -> None:
        """Stores a run that waits until all of these have succeeded. Raises `Invalid` if one does not exist."""
        await self._database.in_transaction(
            "insert_dependent", lambda within: self.insert_dependent_within(within, run, upstream_ids)
        )

    async def insert_dependent_within(self, within: Transaction, run: NewRun, upstream_ids: Sequence[UUID]) -> None:
        live = await self.mark_followed(within, upstream_ids)
        given = (
            run.id,
            run.task,
            run.queue,
            run.name,
            run.priority,
            run.due_at,
            run.delay_seconds,
            run.payload,
            run.options,
            run.expires_at,
        )
        arguments = (*given, upstream_ids, self._aging, self._now(), not_finished_before(run.id))
        if not await within.fetch_value(self._queries["insert_dependent"], *arguments):
            return
        if missing := await self.link(within, run.id, upstream_ids, live):
            raise Invalid(f"dependencies: there is no job {str(min(missing))!r}", field="dependencies")

    async def mark_followed(self, within: Transaction, run_ids: Sequence[UUID]) -> set[UUID]:
        """Locks and marks the live runs among these, and returns them."""
        return {row[0] for row in await within.fetch(self._queries["mark_followed"], run_ids=run_ids)}

    async def link(self, within: Transaction, run_id: UUID, upstream_ids: Sequence[UUID], live: set[UUID]) -> set[UUID]:
        """Links a run to its upstream runs, of which some are live. Returns the ids that never existed."""
        await self.insert_dependencies(within, [(upstream, run_id) for upstream in upstream_ids])
        ended = [upstream for upstream in upstream_ids if upstream not in live]
        row = await within.fetch_row(self._queries["settle_ended"], run_ids=ended, now=self._now()) if ended else None
        return set(ended).difference(row[0] if row else ())

    def _now(self) -> datetime | None:
        return self._database.clock.sql_now()
