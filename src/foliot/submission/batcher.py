"""Writes simultaneous submissions with one statement; each caller waits for its own result.

Batching delays nothing: a batch is what arrived while the previous one was being written.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from foliot.clock import Clock
from foliot.errors import FoliotError, StoreUnavailable
from foliot.events import EventBus
from foliot.service import Service

BATCH = 500
Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Service, Generic[Item, Result]):
    """Collects items from the event loop and from other threads. Subclasses write a batch."""

    def __init__(self, *, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._pending: list[tuple[Item, asyncio.Future[Result] | Future[Result]]] = []
        self._lock = threading.Lock()
        """Between threads that add: the event loop itself takes items without it."""
        self._is_closed = False
        self._home: asyncio.AbstractEventLoop

    async def write(self, items: Sequence[Item]) -> Sequence[Result | Exception]:
        """Writes all items and returns a result for each, or the exception for one that was refused. Raises when
        nothing was written."""
        raise NotImplementedError  # pragma: no cover

    async def add(self, item: Item) -> Result:
        """Returns once the item is written."""
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._pending.append((item, answer))
        if len(self._pending) == 1:
            self.wake()
        return await answer

    def add_from_thread(self, item: Item) -> Future[Result]:
        """As `add`, for any thread. Use only one of the two in a batcher: `add` takes no lock."""
        answer: Future[Result] = Future()
        with self._lock:
            if self._is_closed:
                raise StoreUnavailable("PostgreSQL: this client is closed")
            self._pending.append((item, answer))
            is_first = len(self._pending) == 1
        if is_first:
            self._home.call_soon_threadsafe(self.wake)
        return answer

    async def on_start(self) -> None:
        self._home = asyncio.get_running_loop()

    async def run_once(self) -> float | None:
        taken = self._pending[:BATCH]
        # Threads may have added more between the two statements.
        del self._pending[: len(taken)]
        # A caller in a thread that has given up by now has submitted nothing.
        batch = [
            (item, answer)
            for item, answer in taken
            if isinstance(answer, asyncio.Future) or answer.set_running_or_notify_cancel()
        ]
        if batch:
            await self._write(batch)
        return 0 if self._pending else None

    async def on_stop(self) -> None:
        while True:
            await self.run_once()
            with self._lock:
                self._is_closed = not self._pending
            if self._is_closed:
                return

    async def _write(self, batch: Sequence[tuple[Item, asyncio.Future[Result] | Future[Result]]]) -> None:
        results: Sequence[Result | Exception]
        try:
            results = await self.write([item for item, _ in batch])
        except Exception as error:
            # PostgreSQL refused one of them and wrote nothing: the others must not fail with it. An error of ours, such
            # as an unreachable database, concerns all.
            if len(batch) > 1 and not isinstance(error, FoliotError):
                for one in batch:
                    await self._write([one])
                return
            results = [error] * len(batch)
        for (_, answer), result in zip(batch, results, strict=True):
            if answer.done():
                continue
            if isinstance(result, Exception):
                answer.set_exception(result)
            else:
                answer.set_result(result)
