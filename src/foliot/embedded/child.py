"""A child process, and the log that takes what it says.

The end of a child is reported once, in the event loop that started it, after the child was reaped.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from foliot.clock import Clock

LOG_MAX_BYTES = 10_000_000
LOG_TAIL_LINES = 12


class Child:
    """A child process, in a session of its own so that Ctrl-C in the terminal reaches only its parent.

    A thread reaps it: the same under asyncio and uvloop, with and without pidfd, and never left a zombie.
    """

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        directory: Path,
        log: Path,
        typed: bytes,
        on_end: Callable[[Child], None],
    ) -> None:
        self.ended = asyncio.Event()
        self.ending = False
        self.code: int | None = None
        self._on_end = on_end
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=directory,
                env=environment,
                start_new_session=True,
            )
        self.pid = self._process.pid
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._reap, args=(loop, typed), name=f"reaper of {self.pid}", daemon=True).start()

    async def end(self, clock: Clock, steps: Iterable[tuple[signal.Signals, float]]) -> None:
        """Each step is a signal and how long it may take."""
        self.ending = True
        for number, seconds in steps:
            if self.ended.is_set():
                return
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
            await clock.wait(self.ended, seconds)

    def _reap(self, loop: asyncio.AbstractEventLoop, typed: bytes) -> None:
        self._process.communicate(typed)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self.code = self._process.returncode
        self.ended.set()
        self._on_end(self)


class Log:
    """PostgreSQL's log file, and where the part of this start begins in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin = 0

    def open_new_chapter(self) -> None:
        with self.path.open("ab") as log:
            self._begin = log.tell()
        if self._begin > LOG_MAX_BYTES:
            self.path.replace(self.path.with_suffix(".log.1"))
            self._begin = 0

    def tail(self) -> list[str]:
        try:
            with self.path.open("rb") as log:
                log.seek(max(self._begin, log.seek(0, os.SEEK_END) - 8192))
                return log.read().decode(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        except OSError:
            return []
