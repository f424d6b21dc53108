"""Clears up after a worker that was killed, with its launchers, in the very moment in which they started a command.

bubblewrap binds its two processes to their parents, each some time after it came to be. A launcher that is killed in between takes the
outer one along and leaves the inner one waiting for a word from it, for ever: nothing runs in there, but it stays. So whatever is started
under bubblewrap carries the worker's mark in its environment (commands get another one), and a process that sleeps on a pipe until the
worker is gone then kills what bears it. It is a shell while it sleeps, which takes a megabyte, and becomes `sweeper.py` when it is needed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from pathlib import Path

from foliot.worker.executors.sweeper import VARIABLE

SLEEPER = 'read -r nothing; exec "$@"'
SWEEPER = Path(__file__).with_name("sweeper.py")


class Guard:
    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._pipe = -1
        self._process: Process | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What is started under bubblewrap gets this."""
        return {VARIABLE: self._mark}

    async def start(self) -> None:
        reading, self._pipe = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", SLEEPER, "foliot-guard", sys.executable, "-I", "-S", str(SWEEPER), self._mark,
                stdin=reading, stdout=DEVNULL, stderr=DEVNULL, env={}, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(reading)

    def let_go(self) -> None:
        """What the death of the worker does: the pipe ends, and the guard begins to sweep."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    async def stop(self) -> None:
        """By a worker that leaves nothing behind: there is nothing to sweep."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            self.let_go()
