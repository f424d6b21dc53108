"""Stores jobs that are submitted at the same time in one statement, with what the audit record says of them: each
caller waits for its own, PostgreSQL commits once.

Nothing is delayed for it: a batch is whatever gathered while the previous one was on its way.
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from foliot.clock import Clock
from foliot.errors import FoliotError
from foliot.events import EventBus, RunsSubmitted
from foliot.model.run import NewRun, StoredRun
from foliot.model.states import RunState
from foliot.service import Service
from foliot.store.access import AuditEntry
from foliot.store.hints import GATES_TOPIC
from foliot.store.store import Store

BATCH = 500
Pending = tuple[NewRun, AuditEntry | None, asyncio.Future[StoredRun]]


class Submitter(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._pending: list[Pending] = []

    async def submit(self, run: NewRun, entry: AuditEntry | None = None) -> StoredRun:
        """Returns when the run is stored for good, and so is the entry that tells of it."""
        answer: asyncio.Future[StoredRun] = asyncio.get_running_loop().create_future()
        self._pending.append((run, entry, answer))
        if len(self._pending) == 1:
            self.wake()
        return await answer

    async def run_once(self) -> float | None:
        batch = self._pending[:BATCH]
        if not batch:
            return None
        del self._pending[:BATCH]
        await self._store_all(batch)
        return 0 if self._pending else None

    async def on_stop(self) -> None:
        while self._pending:
            await self.run_once()

    async def _store_all(self, batch: list[Pending]) -> None:
        try:
            stored = await self._insert(
                [run for run, _, _ in batch], [entry for _, entry, _ in batch if entry is not None]
            )
        except Exception as error:
            if isinstance(error, FoliotError) or len(batch) == 1:
                for _, _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                return
            # One of them is at fault; the others must not suffer for it.
            for one in batch:
                await self._store_all([one])
            return
        self._store.hints.send({run.queue for run, _, _ in batch if stored[run.id].state is RunState.READY})
        if any(found.state is RunState.HELD for found in stored.values()):
            self._store.hints.send([GATES_TOPIC])
        self.events.emit(RunsSubmitted(len(batch)))
        for run, _, answer in batch:
            if not answer.done():
                answer.set_result(stored[run.id])

    async def _insert(self, runs: list[NewRun], entries: list[AuditEntry]) -> dict[UUID, StoredRun]:
        if not entries:
            return await self._store.runs.insert_runs(runs)
        return await self._store.access.with_audit(
            entries, lambda beside: self._store.runs.insert_runs(runs, beside=beside)
        )
