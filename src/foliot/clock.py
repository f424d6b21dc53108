"""The only module that reads time or sleeps.

Decisions about jobs use the database's clock. The application's clock serves only the time part of ids and log lines
(`now`), and monotonic waits. A test passes in another `Clock`; SQL then uses its `sql_now` instead of the database's
clock. In production `sql_now` is None.
"""

from __future__ import annotations

import asyncio
from asyncio import sleep, timeout
from datetime import UTC, datetime
from time import monotonic, time_ns
from time import sleep as block_thread
from typing import Protocol

# Names are imported rather than modules: a job may replace functions of modules in its worker's process.


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
        return monotonic()

    def sql_now(self) -> datetime | None:
        return None

    async def sleep(self, seconds: float) -> None:
        await sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        if event.is_set():
            return True
        if seconds is None:
            return await event.wait()
        try:
            async with timeout(seconds):
                await event.wait()
        except TimeoutError:
            return False
        return True


async def give_way() -> None:
    """Lets other tasks of the event loop run in the middle of long work that never waits."""
    await sleep(0)


def unix_milliseconds() -> int:
    """For the time part of ids. No decision depends on it."""
    return time_ns() // 1_000_000


def block(seconds: float) -> None:
    """Blocks this thread. For programs without an event loop, such as a client that waits for a job."""
    block_thread(seconds)
