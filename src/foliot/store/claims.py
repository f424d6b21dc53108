"""Claims: a worker takes ready runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from foliot.model.run import Claim, StartableRun
from foliot.store import queries
from foliot.store.arrays import columns
from foliot.store.postgres import Database

LIMITED_SECONDS = 10.0


class Claims:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("claims")

    async def claim_runs(
        self, worker_id: UUID, slots: Mapping[str, int], tasks: Sequence[str], declined: Sequence[UUID] = ()
    ) -> list[Claim]:
        """Claims up to the given number of runs of each queue without a limit, and none of `declined`. If the answer
        gets lost, use `recover_claims`."""
        now = self._database.clock.sql_now()
        arguments = (list(slots), list(slots.values()), tasks, worker_id, now, False, declined)
        return [
            Claim(*row)
            for row in await self._database.fetch(self._queries["claim_runs"], *arguments, is_repeatable=False)
        ]

    async def claim_runs_by_id(
        self,
        worker_id: UUID,
        run_ids: Sequence[UUID],
        slots: Mapping[str, int],
        tasks: Sequence[str],
        declined: Sequence[UUID] = (),
    ) -> list[Claim]:
        """Claims those of these runs that `claim_runs` could claim. If the answer gets lost, use `recover_claims`."""
        now = self._database.clock.sql_now()
        run_ids = [run_id for run_id in run_ids if run_id not in declined] if declined else run_ids
        arguments = (run_ids, list(slots), list(slots.values()), tasks, worker_id, now, False)
        return [
            Claim(*row)
            for row in await self._database.fetch(self._queries["claim_runs_by_id"], *arguments, is_repeatable=False)
        ]

    async def list_startable(self, queues: Sequence[str], limit: int) -> dict[str, list[StartableRun]]:
        """The first runs of each queue that a worker could claim, in the order of claims."""
        found: dict[str, list[StartableRun]] = {queue: [] for queue in queues}
        now = self._database.clock.sql_now()
        for queue, *row in await self._database.fetch(self._queries["list_startable"], queues, limit, now):
            found[queue].append(StartableRun(*row))
        return found

    async def claim_limited_runs(
        self, worker_id: UUID, queue: str, slots: int, tasks: Sequence[str], declined: Sequence[UUID] = ()
    ) -> list[Claim]:
        """Claims from a queue with a limit: one worker at a time."""
        arguments = ([queue], [slots], tasks, worker_id, self._database.clock.sql_now(), True, declined)
        async with self._database.transaction(statement_seconds=LIMITED_SECONDS) as session:
            await session.fetchval(self._queries["take_queue"].sql, queue)
            return [Claim(*row) for row in await session.fetch(self._queries["claim_runs"].sql, *arguments)]

    async def recover_claims(self, worker_id: UUID, held: Sequence[tuple[UUID, int]]) -> list[Claim]:
        """Returns the runs that the worker owns but does not hold. `held` lists runs and tokens."""
        rows = await self._database.fetch(self._queries["recover_claims"], worker_id, *columns(held, 2))
        return [Claim(*row) for row in rows]

    async def held_runs(self, worker_id: UUID, asked: Sequence[tuple[UUID, int]]) -> set[tuple[UUID, int]]:
        """Returns the runs and tokens among these that the worker holds."""
        rows = await self._database.fetch(self._queries["held_runs"], worker_id, *columns(asked, 2))
        return {(row[0], row[1]) for row in rows}
