"""Runs long-running commands: the event loop, signals, and stopping when the parent process dies."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import click

from foliot.assembly import Stop
from foliot.clock import SystemClock, block
from foliot.config import forget_secrets
from foliot.service import hidden, loop_factory

SUPERVISOR_GONE_SECONDS = 2.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)
CHECK_SECONDS = 5.0
CLOSE_SECONDS = 5.0
"""Time for the interpreter to exit after the work has ended."""
LAST_RESORT_SECONDS = 20.0
"""Extra time after the grace period before the process is killed."""

supervised_option = click.option(
    "--supervised",
    is_flag=True,
    hidden=True,
    help="Stop when standard input ends, because the parent process is gone.",
)


def run(
    work: Callable[[Stop], Awaitable[Any]], *, is_supervised: bool = False, ends_within: float | None = None
) -> None:
    """Runs the work until it ends or a signal stops it. The first SIGTERM or SIGINT drains, the second stops at once.

    With `ends_within`, the process ends for certain that number of seconds after the first signal, plus a margin.
    """
    forget_secrets()
    last_resort = None if ends_within is None else LastResort(ends_within)

    async def main() -> None:
        stop, loop = Stop.new(), asyncio.get_running_loop()
        listen(loop, stop, last_resort)
        if is_supervised:
            loop.add_reader(sys.stdin.fileno(), _supervisor_gone, stop)
        await work(stop)

    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            run_to_completion(runner.get_loop(), main(), contains_jobs=last_resort is not None)
            if last_resort is not None:
                last_resort.leave_by(CLOSE_SECONDS, 0)
    except BaseException:
        if last_resort is not None:
            last_resort.leave_by(CLOSE_SECONDS, 1)
        raise


def run_to_completion(loop: asyncio.AbstractEventLoop, work: Any, *, contains_jobs: bool = False) -> None:
    """Runs the coroutine to its end, even if a job stops the loop or cancels all tasks.

    With `contains_jobs`, a job cannot end the process either by `sys.exit()` in a task or callback of its own: asyncio
    lets only these two exceptions out of the loop, which then continues where it stopped.
    """
    task = hidden(loop.create_task(work))
    task.add_done_callback(lambda _: loop.stop())
    while not task.done():
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            if not contains_jobs and not task.done():
                raise
    task.result()


def listen(loop: asyncio.AbstractEventLoop, stop: Stop, last_resort: LastResort | None) -> None:
    """Handles signals, and restores the handlers if a job replaces them."""

    def hear(number: int, frame: object) -> None:
        # Python calls this between bytecodes, even while the event loop is blocked.
        if last_resort is not None:
            last_resort.asked()

    def install() -> None:
        for number in SIGNALS:
            loop.add_signal_handler(number, stop.ask)
            signal.signal(number, hear)

    def is_deaf() -> bool:
        return any(signal.getsignal(number) is not hear for number in SIGNALS)

    install()
    if last_resort is not None:
        last_resort.look_after(is_deaf, lambda: loop.call_soon_threadsafe(install))


class LastResort:
    """Ends the process from its own thread after the deadline.

    Threads that jobs left running, tasks that ignore their cancellation, or a blocked event loop could otherwise keep
    the process alive forever. The thread also notices when a job replaces the signal handlers, so that the event loop
    does not have to wake up for that.
    """

    def __init__(self, seconds: float) -> None:
        self._clock = SystemClock()
        self._seconds = seconds
        self._end: tuple[float, int] | None = None
        self._is_deaf: Callable[[], bool] = lambda: False
        self._on_deaf: Callable[[], object] = lambda: None
        # Start the thread now: a signal handler can't safely start one.
        threading.Thread(target=self._run, name="last resort", daemon=True).start()

    def look_after(self, is_deaf: Callable[[], bool], on_deaf: Callable[[], object]) -> None:
        self._is_deaf, self._on_deaf = is_deaf, on_deaf

    def asked(self) -> None:
        """Sets the deadline: the first signal gives the full grace period, the second gives none."""
        self.leave_by((self._seconds if self._end is None else 0) + LAST_RESORT_SECONDS, 1)

    def leave_by(self, seconds: float, code: int) -> None:
        self._end = (self._clock.monotonic() + seconds, code)

    def _run(self) -> None:
        while True:
            block(CHECK_SECONDS)
            # Jobs may have broken anything, and the loop may be closed; keep checking the deadline in any case.
            with suppress(Exception):
                if self._is_deaf():
                    self._on_deaf()
            if self._end is not None and self._clock.monotonic() >= self._end[0]:
                os._exit(self._end[1])


def _supervisor_gone(stop: Stop) -> None:
    if os.read(sys.stdin.fileno(), 1) == b"":
        loop = asyncio.get_running_loop()
        loop.remove_reader(sys.stdin.fileno())
        stop.asked.set()
        stop.hurried.set()
        # The embedded PostgreSQL ends with the supervisor, so do not wait for it.
        loop.call_later(SUPERVISOR_GONE_SECONDS, os._exit, 1)
