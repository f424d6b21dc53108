"""Watches, from a thread of its own, for the harm that jobs can do to the process they share with their worker.

An async function that computes or blocks keeps the event loop from everything else: other jobs, timeouts, cancels and
the writing of outcomes. The lease survives, because the heartbeat has its own thread. The watchdog can only report the
block and its location.

A job can also break the process for good, for instance by replacing a built-in function. A worker that renews its lease
but writes nothing, or that lost an attempt inside itself, would hold its runs for ever. The watchdog ends such a
process, and other workers get the runs when the lease expires.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from foliot.events import EventBus, LoopBlocked

CHECK_SECONDS = 1.0
IDLE_CHECK_SECONDS = 5.0
BLOCKED_CHECKS = 5
"""The number of checks without an answer after which the block is reported, and reported again. A process that was
suspended as a whole misses only one check."""
BROKEN_CHECKS = 60
"""Consecutive checks that found outcomes waiting, the loop free and the lease in force, but nothing written."""
NOTHING_WRITTEN = "no outcome was written for a minute although PostgreSQL answers"
EXIT_CODE = 70
FRAMES_SHOWN = 6


class LoopWatchdog:
    def __init__(
        self,
        *,
        events: EventBus,
        is_idle: Callable[[], bool] = lambda: False,
        unwritten: Callable[[], int | None] = lambda: None,
        broken: Callable[[], str] = lambda: "",
    ) -> None:
        """`is_idle`: whether no job runs in the process. `unwritten`: the number of batches written so far while
        outcomes wait, or None. `broken`: the part of the worker that has died, if any."""
        self._events = events
        self._is_idle = is_idle
        self._unwritten = unwritten
        self._broken = broken
        self._is_stopped = threading.Event()
        self._has_answered = True
        self._silent_checks = self._stuck_checks = 0
        self._written: int | None = None
        self._recursion_limit = sys.getrecursionlimit()
        self._loop: asyncio.AbstractEventLoop
        self._loop_thread = 0

    def start(self) -> None:
        self._loop, self._loop_thread = asyncio.get_running_loop(), threading.get_ident()
        threading.Thread(target=self._run, name="loop watchdog", daemon=True).start()

    def stop(self) -> None:
        self._is_stopped.set()

    def _run(self) -> None:
        while not self._is_stopped.wait(self._pause_seconds()):
            if sys.getrecursionlimit() < self._recursion_limit:
                # A job lowered it for all threads.
                sys.setrecursionlimit(self._recursion_limit)
            # A job may have broken anything. The next check may still work.
            with suppress(Exception):
                self._check()

    def _pause_seconds(self) -> float:
        with suppress(Exception):
            if self._has_answered and self._is_idle():
                return IDLE_CHECK_SECONDS
        return CHECK_SECONDS

    def _check(self) -> None:
        if why := self._broken():
            leave(why)
        if not self._has_answered:
            self._silent_checks += 1
            if self._silent_checks % BLOCKED_CHECKS == 0:
                frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001
                self._events.emit(LoopBlocked(self._silent_checks * CHECK_SECONDS, stack_of(frame)))
            return
        if self._is_idle():
            # Waking an idle loop every second would double the cost of an idle worker.
            return
        self._silent_checks, self._has_answered = 0, False
        self._loop.call_soon_threadsafe(self._answer)
        written = self._unwritten()
        self._stuck_checks = self._stuck_checks + 1 if written is not None and written == self._written else 0
        self._written = written
        if self._stuck_checks >= BROKEN_CHECKS:
            leave(NOTHING_WRITTEN)

    def _answer(self) -> None:
        self._has_answered = True


def leave(why: str) -> NoReturn:
    try:
        os.write(2, f"foliot: {why}: this worker process is broken and exits. Its runs are lost.\n".encode())
    finally:
        os._exit(EXIT_CODE)


def stack_of(frame: FrameType | None) -> str:
    found: list[str] = []
    while frame is not None and len(found) < FRAMES_SHOWN:
        found.append(f"{frame.f_code.co_filename[-200:]}:{frame.f_lineno} {frame.f_code.co_name[:100]}")
        frame = frame.f_back
    return ", called by ".join(found)
