"""A clock that a test moves by hand: the application's and, through `sql_now`, the database's."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

# Turns of the event loop that a woken sleeper gets to run and to sleep again, before time moves further.
SETTLE_TURNS = 50


class FakeClock:
    def __init__(self, start: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._step = timedelta()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def sql_now(self) -> datetime | None:
        return self.now() + self._step

    def step_database(self, seconds: float) -> None:
        """Moves the database's clock forward or back. This process's clock does not change."""
        self._step += timedelta(seconds=seconds)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), waker))
        await waker

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        if event.is_set() or seconds is None:
            return await event.wait()
        waiting, sleeping = asyncio.ensure_future(event.wait()), asyncio.ensure_future(self.sleep(seconds))
        try:
            await asyncio.wait([waiting, sleeping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            sleeping.cancel()
        return event.is_set()

    async def advance(self, seconds: float) -> None:
        """Moves time forward. Sleepers that were due have run, in order, when this returns."""
        target = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= target:
            due, _, waker = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, due)
            if not waker.done():
                waker.set_result(None)
                for _ in range(SETTLE_TURNS):
                    await asyncio.sleep(0)
        self._elapsed = target
