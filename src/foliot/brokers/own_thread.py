"""A thread for the calls of a client that blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class OwnThread:
    """Makes one call after the other. The end of the process does not wait for a call that hangs."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        Thread(target=self._run, name=name, daemon=True).start()

    async def call(self, work: Callable[[], T]) -> T:
        """A cancelled call still ends before the next one begins."""
        future: Future[T] = Future()
        self._calls.put((work, future))
        return await asyncio.wrap_future(future)

    def end(self) -> None:
        """Ends the thread after the calls before."""
        self._calls.put(None)

    def _run(self) -> None:
        while (found := self._calls.get()) is not None:
            work, future = found
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
