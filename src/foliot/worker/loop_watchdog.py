"""Looks, from a thread of its own, after what jobs can do to the process they share with their worker.

An async function that computes or blocks instead of waiting keeps the event loop from everything else: other jobs, time
limits, cancels and the writing of outcomes. The lease survives, because its thread is another one. All that can be done
here is to say so, and where.

A job can also break the process for good, by replacing a built-in function, say. A worker that keeps its lease and
writes nothing would hold its runs for ever. It ends instead, and others get them when its lease is over.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from foliot.events import EventBus, LoopBlocked

LOOK_SECONDS = 1.0
IDLE_LOOK_SECONDS = 5.0
BLOCKED_LOOKS = 5
"""After so many looks without an answer it is told, and again after as many more. A process that was stopped as a whole
looks only once."""
BROKEN_LOOKS = 60
"""In which outcomes waited, the loop was free, the lease was in force, and nothing was written."""
BROKEN = (
    b"foliot: no outcome could be written for a minute although PostgreSQL answers: "
    b"this worker is broken, and ends. Its runs are lost.\n"
)
EXIT_CODE = 70
FRAMES_SHOWN = 6


class LoopWatchdog:
    def __init__(
        self,
        *,
        events: EventBus,
        is_idle: Callable[[], bool] = lambda: False,
        unwritten: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`is_idle`: no job's code is in the process. `unwritten`: None, or how much has been written while more
        waits."""
        self._events = events
        self._is_idle = is_idle
        self._unwritten = unwritten
        self._is_over = threading.Event()
        self._has_answered = True
        self._silent_looks = self._idle_looks = 0
        self._written: int | None = None
        self._recursion_limit = sys.getrecursionlimit()
        self._loop: asyncio.AbstractEventLoop
        self._loop_thread = 0

    def start(self) -> None:
        self._loop, self._loop_thread = asyncio.get_running_loop(), threading.get_ident()
        threading.Thread(target=self._run, name="loop watch", daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.wait(self._pause_seconds()):
            if sys.getrecursionlimit() < self._recursion_limit:
                # A job set it, for all threads.
                sys.setrecursionlimit(self._recursion_limit)
            # Whatever a job has broken, the next look may be the one that matters.
            with suppress(Exception):
                self._look()

    def _pause_seconds(self) -> float:
        with suppress(Exception):
            if self._has_answered and self._is_idle():
                return IDLE_LOOK_SECONDS
        return LOOK_SECONDS

    def _look(self) -> None:
        if not self._has_answered:
            self._silent_looks += 1
            if self._silent_looks % BLOCKED_LOOKS == 0:
                frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001
                self._events.emit(LoopBlocked(self._silent_looks * LOOK_SECONDS, where(frame)))
            return
        if self._is_idle():
            # An idle worker sleeps: waking its loop every second would cost as much as everything else that it does.
            return
        self._silent_looks, self._has_answered = 0, False
        self._loop.call_soon_threadsafe(self._answer)
        written = self._unwritten()
        self._idle_looks = self._idle_looks + 1 if written is not None and written == self._written else 0
        self._written = written
        if self._idle_looks >= BROKEN_LOOKS:
            os.write(2, BROKEN)
            os._exit(EXIT_CODE)

    def _answer(self) -> None:
        self._has_answered = True


def where(frame: FrameType | None) -> str:
    found: list[str] = []
    while frame is not None and len(found) < FRAMES_SHOWN:
        found.append(f"{frame.f_code.co_filename[-200:]}:{frame.f_lineno} {frame.f_code.co_name[:100]}")
        frame = frame.f_back
    return ", called by ".join(found)
