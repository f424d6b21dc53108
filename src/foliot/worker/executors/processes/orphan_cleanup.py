"""Clears up after a worker that was killed together with its launchers.

A launcher that outlives its worker ends what it started. One that is killed too, in whichever moment, can leave
something: a command and what came from it; of bubblewrap, which binds its two processes to their parents some time
after each came to be, an inner one that waits for ever for a word from the outer. So whatever a worker starts carries
its mark in the environment (but for commands in a namespace, which end with that), and a process that sleeps on a pipe
until the worker is gone then kills what bears it. It is a shell while it sleeps, which takes a megabyte, and becomes
`sweeper.py` when it is needed.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from pathlib import Path

SLEEPER = 'read -r nothing; exec "$@"'
SWEEPER = Path(__file__).with_name("sweeper.py")


class OrphanCleanup:
    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._pipe = -1
        self._process: Process | None = None

    async def start(self) -> None:
        reading, self._pipe = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", SLEEPER, "foliot-orphan-cleanup", sys.executable, "-I", "-S", str(SWEEPER), self._mark,
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
