"""Jobs that a program submits at the same time, from its threads and tasks, are stored by one statement; each caller
waits for its own.

Nothing is delayed for it: a batch is whatever gathered while the previous one was on its way. What came together need
not stay together: should PostgreSQL refuse one of them, the others are stored all the same.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from uuid import UUID

from foliot.clock import Clock
from foliot.errors import FoliotError, StoreUnavailable
from foliot.events import EventBus
from foliot.model.job_request import JobRequest
from foliot.model.run import NewRun
from foliot.sdk.direct_submission import Asking
from foliot.service import Service

BATCH = 500
Pending = tuple[JobRequest, Future[UUID]]


class Gathering(Service):
    def __init__(self, *, asking: Asking, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._asking = asking
        self._home = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._pending: list[Pending] = []
        self._is_closed = False

    def add(self, job: JobRequest) -> Future[UUID]:
        """For any thread: the id of a job, once it is stored."""
        answer: Future[UUID] = Future()
        with self._lock:
            if self._is_closed:
                raise StoreUnavailable("PostgreSQL: this client is closed")
            self._pending.append((job, answer))
            is_first = len(self._pending) == 1
        if is_first:
            self._home.call_soon_threadsafe(self.wake)
        return answer

    async def run_once(self) -> float | None:
        with self._lock:
            taken = self._pending[:BATCH]
            del self._pending[:BATCH]
        if not taken:
            return None
        runs = []
        for job, answer in taken:
            # Whoever has given up by now has not submitted anything.
            if answer.set_running_or_notify_cancel():
                try:
                    runs.append((await self._asking.run_of(job), answer))
                except Exception as error:
                    answer.set_exception(error)
        await self._store_all(runs)
        return 0 if self._pending else None

    async def on_stop(self) -> None:
        while True:
            await self.run_once()
            with self._lock:
                self._is_closed = not self._pending
            if self._is_closed:
                return

    async def _store_all(self, batch: list[tuple[NewRun, Future[UUID]]]) -> None:
        if not batch:
            return
        try:
            await self._asking.store_all([run for run, _ in batch])
        except Exception as error:
            # One of them is at fault, and nothing is stored: the others must not suffer for it. That PostgreSQL is away
            # concerns all.
            if len(batch) > 1 and not isinstance(error, FoliotError):
                for one in batch:
                    await self._store_all([one])
                return
            for _, answer in batch:
                answer.set_exception(error)
            return
        for run, answer in batch:
            answer.set_result(run.id)
