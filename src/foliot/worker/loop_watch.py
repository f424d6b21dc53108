"""Looks, from a thread of its own, after what jobs can do to the process they share with their worker.

An async function that computes or blocks instead of waiting keeps the event loop from everything else: other jobs, time limits, cancels and
the writing of outcomes. The lease survives, because its thread is another one. All that can be done here is to say so, and where.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from types import FrameType

from foliot.events import EventBus, LoopBlocked

LOOK_SECONDS = 1.0
BLOCKED_LOOKS = 5
"""After so many looks without an answer it is told, and again after as many more. A process that was stopped as a whole looks only once."""
FRAMES_SHOWN = 6


class LoopWatch:
    def __init__(self, *, events: EventBus) -> None:
        self._events = events
        self._is_over = threading.Event()
        self._has_answered = True
        self._recursion_limit = sys.getrecursionlimit()
        self._loop: asyncio.AbstractEventLoop
        self._loop_thread = 0

    def start(self) -> None:
        self._loop, self._loop_thread = asyncio.get_running_loop(), threading.get_ident()
        threading.Thread(target=self._run, name="loop watch", daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()

    def _run(self) -> None:
        looks = 0
        while not self._is_over.wait(LOOK_SECONDS):
            if sys.getrecursionlimit() < self._recursion_limit:
                # A job set it, for all threads.
                sys.setrecursionlimit(self._recursion_limit)
            if self._has_answered:
                looks, self._has_answered = 0, False
                try:
                    self._loop.call_soon_threadsafe(self._answer)
                except RuntimeError:
                    return
                continue
            looks += 1
            if looks % BLOCKED_LOOKS == 0:
                self._events.emit(LoopBlocked(looks * LOOK_SECONDS, where(sys._current_frames().get(self._loop_thread))))  # noqa: SLF001

    def _answer(self) -> None:
        self._has_answered = True


def where(frame: FrameType | None) -> str:
    found: list[str] = []
    while frame is not None and len(found) < FRAMES_SHOWN:
        found.append(f"{frame.f_code.co_filename[-200:]}:{frame.f_lineno} {frame.f_code.co_name[:100]}")
        frame = frame.f_back
    return ", called by ".join(found)
