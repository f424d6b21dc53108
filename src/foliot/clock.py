"""The only module that reads time or sleeps.

Decisions about jobs use the database's clock. The application's clock serves only the time part of ids and log lines
(`now`), and monotonic waits. A test passes in another `Clock`; SQL then uses its `sql_now` instead of the database's
clock. In production `sql_now` is None.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    def sql_now(self) -> datetime | None: ...

    async def sleep(self, seconds: float) -> None: ...

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        """Waits until the event is set (True) or the time has passed (False)."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sql_now(self) -> datetime | None:
        return None

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        if event.is_set():
            return True
        if seconds is None:
            return await event.wait()
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
        return True


async def give_way() -> None:
    """Lets other tasks of the event loop run in the middle of long work that never waits."""
    await asyncio.sleep(0)


def unix_milliseconds() -> int:
    """For the time part of ids. No decision depends on it."""
    return time.time_ns() // 1_000_000


def block(seconds: float) -> None:
    """Blocks this thread. For programs without an event loop, such as a client that waits for a job."""
    time.sleep(seconds)
