"""Finds runs and parents with wrong counters, and repairs dependents. Each finding is a bug in Foliot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from foliot.store import queries
from foliot.store.dependencies import Dependencies
from foliot.store.postgres import Database, Transaction

FIRST_ID, LAST_ID = UUID(int=0), UUID(int=2**128 - 1)


@dataclass(frozen=True, slots=True)
class Look:
    """One step of the search: where it begins, and how much it reads. None: all rows of that table were read."""

    after_run: UUID | None = FIRST_ID
    after_parent: UUID | None = FIRST_ID
    runs: int = 2000
    parents: int = 200


class StuckRuns:
    def __init__(self, database: Database, *, dependencies: Dependencies) -> None:
        self._database = database
        self._dependencies = dependencies
        self._queries = queries.load("stuck_runs")

    async def count_again(self, run_id: UUID) -> None:
        """Counts the upstream runs of a waiting run again."""

        async def work(within: Transaction) -> None:
            upstream_ids = await within.fetch_value(self._queries["count_again"], run_id=run_id)
            if upstream_ids:
                live = await self._dependencies.mark_followed(within, upstream_ids)
                await self._dependencies.link(within, run_id, upstream_ids, live)

        await self._database.in_transaction("count_again", work)

    async def find_stuck(self, look: Look) -> tuple[list[tuple[str, UUID]], Look | None]:
        """Returns the kind and id of each finding, and the next step, or None at the end."""
        rows = await self._database.fetch(
            self._queries["find_stuck"],
            after_run=look.after_run or LAST_ID,
            after_parent=look.after_parent or LAST_ID,
            runs=look.runs,
            parents=look.parents,
        )
        following = replace(look, after_run=rows[0][0], after_parent=rows[0][1])
        is_done = following.after_run is None and following.after_parent is None
        return [(row[2], row[3]) for row in rows if row[3] is not None], None if is_done else following
