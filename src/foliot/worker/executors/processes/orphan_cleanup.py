"""Kills the processes that a worker leaves behind when it is killed together with its launchers.

A launcher that outlives its worker kills the processes it started. A launcher that is killed too can leave a command
and its children behind, or an inner bubblewrap process that waits for ever for the outer one, since bubblewrap ties its
processes to their parents only some time after it starts them. So every process that a worker starts carries a mark in
its environment, except commands in a namespace, which end with the namespace. A helper process sleeps on a pipe until
the worker is gone, then kills every process with the mark. It is a shell while it sleeps, which takes a megabyte, and
then becomes `sweeper.py`.
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

    def release_pipe(self) -> None:
        """Closes the pipe, as the worker's death does. The helper process starts to sweep."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    async def stop(self) -> None:
        """Ends the helper process without a sweep. The worker must have cleaned up already."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            self.release_pipe()
