"""Unique keys: at most one live run has a key."""

from __future__ import annotations

from foliot.errors import Conflict
from foliot.model.namespace import bare_key
from foliot.model.priority import aging_microseconds
from foliot.model.run import NewRun, StoredRun, SubmittedRun
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database, Record, Transaction
from foliot.store.run_inserts import RunInserts

LOOKS = 10
"""The run that has the key may end between two statements, and another run may take the key."""


class UniqueRuns:
    def __init__(self, database: Database, *, inserts: RunInserts, aging_seconds: float) -> None:
        self._database = database
        self._inserts = inserts
        self._aging = aging_microseconds(aging_seconds)
        self._queries = queries.load("unique_runs")

    async def resolve(self, within: Transaction, run: NewRun) -> SubmittedRun:
        """Resolves a run that was not stored because another run has its key."""
        key = run.unique_key or ""
        for _ in range(LOOKS):
            replaced = await self.replace_run(within, run) if run.on_conflict == "replace" else None
            existing = replaced or await self.find_unique_run(within, key)
            if existing is not None and run.on_conflict == "reject":
                raise Conflict(f"unique: the run {existing.id} has the key {bare_key(key)!r} and is {existing.state}")
            if existing is not None:
                return existing
            stored = await self._inserts.insert_runs([run], within=within)
            if run.id in stored:
                return new_submission(run, stored[run.id])
        raise Conflict(f"unique: runs with the key {bare_key(key)!r} come and go too fast; try again")

    async def find_unique_run(self, within: Transaction, key: str) -> SubmittedRun | None:
        row = await within.fetch_row(self._queries["find_unique_run"], key)
        return _existing(row) if row else None

    async def replace_run(self, within: Transaction, run: NewRun) -> SubmittedRun | None:
        """None when the run has started or ended."""
        row = await within.fetch_row(
            self._queries["replace_run"],
            run.unique_key,
            run.task,
            run.queue,
            run.name,
            run.priority,
            run.due_at,
            run.delay_seconds,
            run.payload,
            run.options,
            run.expires_at,
            self._database.clock.sql_now(),
            self._aging,
        )
        return _existing(row) if row else None


def new_submission(run: NewRun, stored: StoredRun) -> SubmittedRun:
    return SubmittedRun(
        run.id,
        run.name,
        run.task,
        run.queue,
        run.priority,
        stored.state,
        0,
        stored.due_at,
        stored.created_at,
        is_new=True,
    )


def _existing(row: Record) -> SubmittedRun:
    fields = dict(row)
    return SubmittedRun(**fields | {"state": RunState(fields["state"])}, is_new=False)
