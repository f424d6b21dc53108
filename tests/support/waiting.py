"""Waits for conditions that no event announces."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE_SECONDS = 90.0
"""Enough for anything that must happen, on a busy machine. Only a failing test waits this long."""


async def until(question: Callable[[], Awaitable[T]], *, seconds: float = PATIENCE_SECONDS) -> T:
    """Repeats a question until the answer is true, and returns the answer."""
    give_up_at = time.monotonic() + seconds
    while True:
        answer = await question()
        if answer:
            return answer
        if time.monotonic() > give_up_at:
            raise AssertionError(f"not within {seconds} s; the last answer was {answer!r}")
        await asyncio.sleep(0.02)
