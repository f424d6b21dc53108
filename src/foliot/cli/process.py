"""What every long-running command does alike: the fast event loop, signals, and going along when the process that
started it dies."""

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

LAST_WORDS_SECONDS = 2.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)
LOOK_SECONDS = 5.0
CLOSE_SECONDS = 5.0
"""What the interpreter gets to end in, once all is done that was to be done."""
LAST_RESORT_SECONDS = 20.0
"""Beyond the time that a process was given to end in."""

supervised_option = click.option(
    "--supervised",
    is_flag=True,
    hidden=True,
    help="Stop when standard input ends: the process that started this one is gone.",
)


def run(
    work: Callable[[Stop], Awaitable[Any]], *, is_supervised: bool = False, ends_within: float | None = None
) -> None:
    """Runs until done or asked to stop. The first SIGTERM or SIGINT drains, the second hurries. Where `ends_within` is
    given, the process ends so many seconds after it was asked to, and a few more, whatever keeps it."""
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
            run_to_its_end(runner.get_loop(), main())
            if last_resort is not None:
                last_resort.leave_by(CLOSE_SECONDS, 0)
    except BaseException:
        if last_resort is not None:
            last_resort.leave_by(CLOSE_SECONDS, 1)
        raise


def run_to_its_end(loop: asyncio.AbstractEventLoop, work: Any) -> None:
    """Also when a job on the loop stops the loop, or cancels every task that it finds there."""
    task = hidden(loop.create_task(work))
    task.add_done_callback(lambda _: loop.stop())
    while not task.done():
        loop.run_forever()
    task.result()


def listen(loop: asyncio.AbstractEventLoop, stop: Stop, last_resort: LastResort | None) -> None:
    """For signals, and again when a job has taken them over."""

    def hear(number: int, frame: object) -> None:
        # Called between two steps of whatever runs, also where the loop itself hears nothing.
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
    """Ends the process from a thread of its own when its time is over: threads that jobs have left running, tasks that
    swallow their cancellation and a blocked event loop can keep it for ever.

    The thread also notices when a job has taken over the signals. The loop itself need not wake up for that.
    """

    def __init__(self, seconds: float) -> None:
        self._clock = SystemClock()
        self._seconds = seconds
        self._end: tuple[float, int] | None = None
        self._is_deaf: Callable[[], bool] = lambda: False
        self._on_deaf: Callable[[], object] = lambda: None
        # Started now: whoever handles a signal can't know what it may do.
        threading.Thread(target=self._run, name="last resort", daemon=True).start()

    def look_after(self, is_deaf: Callable[[], bool], on_deaf: Callable[[], object]) -> None:
        self._is_deaf, self._on_deaf = is_deaf, on_deaf

    def asked(self) -> None:
        """The first time it has all its time, the second time none."""
        self.leave_by((self._seconds if self._end is None else 0) + LAST_RESORT_SECONDS, 1)

    def leave_by(self, seconds: float, code: int) -> None:
        self._end = (self._clock.monotonic() + seconds, code)

    def _run(self) -> None:
        while True:
            block(LOOK_SECONDS)
            # Whatever a job has broken, the next look may be the one that matters. Once the loop is closed, nobody has
            # to hear.
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
        # The embedded PostgreSQL goes with the supervisor: waiting for it to take last words would be waiting for
        # nothing.
        loop.call_later(LAST_WORDS_SECONDS, os._exit, 1)
