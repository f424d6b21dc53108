"""Runs blocking work of the archive in a thread, with a time limit and without holding up anything else.

A request to a far end that never answers can't be interrupted. Its thread is left behind then: it does not keep the
process from ending, and there are never more than a few of them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from foliot.archive.destination import ArchiveUnavailable
from foliot.service import own_task

T = TypeVar("T")
LEFT_MAX = 3


class Helper:
    def __init__(self, *, stopping: asyncio.Event) -> None:
        self._stopping = stopping
        self._left: list[threading.Thread] = []

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        """Raises `ArchiveUnavailable` after the time limit, and when the service stops."""
        self._left = [thread for thread in self._left if thread.is_alive()]
        if len(self._left) >= LEFT_MAX:
            raise ArchiveUnavailable(f"{len(self._left)} earlier requests to the archive still have no answer")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def finish(result: T | None, error: BaseException | None) -> None:
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]

        def run() -> None:
            result, error = None, None
            try:
                result = work()
            except BaseException as raised:  # it belongs to whoever waits
                error = raised
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(finish, result, error)

        thread = threading.Thread(target=run, name="archive", daemon=True)
        thread.start()
        stopping = own_task(self._stopping.wait(), name="wait for stop")
        try:
            await asyncio.wait([done, stopping], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            await asyncio.wait([stopping])
        if done.done():
            return done.result()
        done.cancel()
        self._left.append(thread)
        why = "the process is stopping" if self._stopping.is_set() else f"no answer within {seconds:g} s"
        raise ArchiveUnavailable(f"the archive: {why}")
