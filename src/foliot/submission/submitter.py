"""Stores the runs of simultaneous requests, and their audit entries, with one statement."""

from __future__ import annotations

from collections.abc import Sequence

from foliot.clock import Clock
from foliot.events import EventBus
from foliot.model.run import NewRun, StoredRun
from foliot.store.audit_log import AuditEntry
from foliot.store.store import Store
from foliot.submission.announcement import announce_runs
from foliot.submission.batcher import Batcher


class Submitter(Batcher[tuple[NewRun, AuditEntry | None], StoredRun]):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store

    async def submit(self, run: NewRun, entry: AuditEntry | None = None) -> StoredRun:
        """Returns once the run and its audit entry are committed."""
        return await self.add((run, entry))

    async def write(self, items: Sequence[tuple[NewRun, AuditEntry | None]]) -> list[StoredRun]:
        runs = [run for run, _ in items]
        entries = [entry for _, entry in items if entry is not None]
        insert = self._store.run_inserts.insert_runs
        stored = await (
            self._store.audit_log.with_audit(entries, lambda beside: insert(runs, beside=beside))
            if entries
            else insert(runs)
        )
        announce_runs(self._store, [(run.queue, stored[run.id].state) for run in runs], len(runs))
        return [stored[run.id] for run in runs]
