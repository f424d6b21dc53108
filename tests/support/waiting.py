"""Waiting for what no event announces."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE_SECONDS = 90.0
"""For what must come, on a machine that is busy with other things. Only a test that fails takes that long."""


async def until(question: Callable[[], Awaitable[T]], *, seconds: float = PATIENCE_SECONDS) -> T:
    """Asks until the answer is true, and returns it."""
    give_up_at = time.monotonic() + seconds
    while True:
        answer = await question()
        if answer:
            return answer
        if time.monotonic() > give_up_at:
            raise AssertionError(f"not within {seconds} s; the last answer was {answer!r}")
        await asyncio.sleep(0.02)
