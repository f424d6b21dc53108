"""Writes simultaneous submissions with one statement; each caller waits for its own result.

Batching delays nothing: a batch is what arrived while the previous one was being written.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

from foliot.clock import Clock
from foliot.errors import FoliotError, StoreUnavailable
from foliot.events import EventBus
from foliot.service import Service

BATCH = 500
Item = TypeVar("Item")
Result = TypeVar("Result")
Answer = asyncio.Future[Result] | Future[Result]


class Batcher(Service, Generic[Item, Result]):
    """Collects items from the event loop and from other threads. Subclasses write a batch."""

    def __init__(self, *, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._pending: list[tuple[Item, Answer[Result]]] = []
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
        """As `add`, for any thread. A batcher that it is used with must not be used with `add`, which takes no lock."""
        answer: Future[Result] = Future()
        self._add(item, answer)
        return answer

    def add_from_loop(self, item: Item) -> asyncio.Future[Result]:
        """As `add_from_thread`, for any event loop. It costs a caller in an event loop half as much."""
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._add(item, answer)
        return answer

    def _add(self, item: Item, answer: Answer[Result]) -> None:
        with self._lock:
            if self._is_closed:
                raise StoreUnavailable("PostgreSQL: this client is closed")
            self._pending.append((item, answer))
            is_first = len(self._pending) == 1
        if is_first:
            self._home.call_soon_threadsafe(self.wake)

    async def on_start(self) -> None:
        self._home = asyncio.get_running_loop()

    async def run_once(self) -> float | None:
        taken = self._pending[:BATCH]
        # Threads may have added more between the two statements.
        del self._pending[: len(taken)]
        # A caller that has given up by now has submitted nothing.
        batch = [
            (item, answer)
            for item, answer in taken
            if (not answer.cancelled() if isinstance(answer, asyncio.Future) else answer.set_running_or_notify_cancel())
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

    async def _write(self, batch: Sequence[tuple[Item, Answer[Result]]]) -> None:
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
        self._answer([(answer, result) for (_, answer), result in zip(batch, results, strict=True)])

    def _answer(self, answers: Iterable[tuple[Answer[Result], Result | Exception]]) -> None:
        elsewhere: dict[asyncio.AbstractEventLoop, list[tuple[Answer[Result], Result | Exception]]] = {}
        for answer, result in answers:
            if isinstance(answer, asyncio.Future) and (loop := answer.get_loop()) is not self._home:
                elsewhere.setdefault(loop, []).append((answer, result))
            else:
                _settle(answer, result)
        for loop, answers_there in elsewhere.items():
            with suppress(RuntimeError):
                # That loop is closed, and its callers with it.
                loop.call_soon_threadsafe(_settle_all, answers_there)


def _settle_all(answers: Iterable[tuple[Answer[Result], Result | Exception]]) -> None:
    for answer, result in answers:
        _settle(answer, result)


def _settle(answer: Answer[Result], result: Result | Exception) -> None:
    if answer.done():
        return
    if isinstance(result, Exception):
        answer.set_exception(result)
    else:
        answer.set_result(result)
