"""Stores submitted runs, with or without unique keys.

A transaction may be repeated after its answer was lost. The keys and run ids then find the rows of the first one.
"""

from __future__ import annotations

from collections.abc import Sequence

from foliot.model.run import NewRun, SubmittedRun
from foliot.store.postgres import Database, Transaction
from foliot.store.run_inserts import RunInserts
from foliot.store.unique_runs import UniqueRuns, new_submission


class Submissions:
    def __init__(self, database: Database, *, inserts: RunInserts, unique_runs: UniqueRuns) -> None:
        self._database = database
        self._inserts = inserts
        self._unique_runs = unique_runs

    async def submit(self, runs: Sequence[NewRun]) -> list[SubmittedRun]:
        """Stores all runs or none, and returns them in the order given. Raises `Conflict` for a taken unique key
        with `on_conflict: reject`."""
        if all(run.unique_key is None for run in runs):
            stored = await self._inserts.insert_runs(runs)
            return [new_submission(run, stored[run.id]) for run in runs]
        return await self._database.in_transaction("submit", lambda within: self.submit_within(within, runs))

    async def submit_within(self, within: Transaction, runs: Sequence[NewRun]) -> list[SubmittedRun]:
        stored = await self._inserts.insert_runs(runs, within=within)
        return [
            new_submission(run, stored[run.id]) if run.id in stored else await self._unique_runs.resolve(within, run)
            for run in runs
        ]
