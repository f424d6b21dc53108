"""Suspends a durable function once it does nothing but wait.

One task of the function is the main one. A wait in the main task ends it at once. A wait in another task, as in
`asyncio.gather`, first gives the others time to reach their next step; then the main task is cancelled, so that it ends
together with everything that it waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from foliot.model.checkpoint import Awaits, Checkpoint
from foliot.sdk.checkpoints import Checkpoints
from foliot.sdk.task_exceptions import Suspended
from foliot.service import own_task

LOOK_SECONDS = 2.0
"""How often waits are looked at while a step beside them keeps the slot."""


class Suspension:
    def __init__(
        self, checkpoints: Checkpoints, *, main: asyncio.Task[Any] | None, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.is_under_way = False
        self._checkpoints = checkpoints
        self._main = main
        """None: the function runs in a thread."""
        self._loop = loop
        self._working = 0
        """Steps that run, and records that are being written."""
        self._has_branches = False
        """A task beside the main one has used the context."""
        self._waits: dict[str, tuple[Checkpoint, asyncio.Future[Checkpoint]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[None] | None = None
        self._is_closed = False

    def awaits(self) -> Awaits:
        return Awaits.of([record for record, _ in self._waits.values()])

    def check(self) -> None:
        """Raises `Suspended` in a function that continues although it was suspended or has ended."""
        if self.is_under_way or self._is_closed:
            raise Suspended
        if self._main is not None and asyncio.current_task() is not self._main:
            self._has_branches = True

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Keeps the slot."""
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1
            self._look_later()

    async def park(self, record: Checkpoint) -> Checkpoint:
        """Waits. Returns if the wait ends before the function could be suspended; otherwise raises `Suspended`."""
        future: asyncio.Future[Checkpoint] = self._loop.create_future()
        self._waits[record.name] = record, future
        is_alone = self._main is None or (asyncio.current_task() is self._main and not self._has_branches)
        if is_alone and not self._working:
            self.is_under_way = True
            raise Suspended
        self._look_later()
        if self._watch is None:
            self._watch = own_task(self._watch_waits())
        timer = None
        if record.kind == "sleep" and record.left_seconds is not None:
            timer = self._loop.call_later(record.left_seconds, _resolve, future, record)
        try:
            return await future
        finally:
            if timer is not None:
                timer.cancel()
            if not self.is_under_way:
                # The wait has ended, or the function itself has given it up.
                del self._waits[record.name]

    async def close(self) -> None:
        """The function has ended."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch
        for _, future in self._waits.values():
            future.cancel()

    def _look_later(self) -> None:
        """Suspends the function if nothing happens for a while."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waits and not self._working and not self._is_closed:
            self._timer = self._loop.call_later(self._checkpoints.linger_seconds, self._suspend)

    def _suspend(self) -> None:
        still_open = [future for _, future in self._waits.values() if not future.done()]
        if self._working or self._is_closed or len(still_open) < len(self._waits):
            return
        self.is_under_way = True
        if self._main is not None:
            self._main.cancel()
        else:
            for future in still_open:
                future.set_exception(Suspended())

    async def _watch_waits(self) -> None:
        """Ends waits for signals and called runs in place while other work keeps the slot."""
        while True:
            await self._checkpoints.pause(LOOK_SECONDS)
            if all(record.kind == "sleep" for record, _ in self._waits.values()):
                continue
            with suppress(Exception):
                for found in await self._checkpoints.load():
                    if found.is_done and found.name in self._waits:
                        _resolve(self._waits[found.name][1], found)


def _resolve(future: asyncio.Future[Checkpoint], record: Checkpoint) -> None:
    if not future.done():
        future.set_result(record)
