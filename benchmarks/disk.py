"""Measures how fast the disk is. After gigabytes of writes it can be busy for longer than PostgreSQL waits, and delays
every commit."""

from __future__ import annotations

import asyncio
import os
from io import FileIO
from pathlib import Path
from statistics import median
from time import perf_counter

SAMPLES, SYNCS = 5, 50
REST_SECONDS, RESTED = 30, 0.5


class Disk:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.usual_syncs = self._syncs()
        """How often a second it says that a page is safe: the most that one commit after the other can reach."""

    async def rested(self) -> None:
        """Returns when the disk is about as fast as it was at first, or when that takes too long."""
        for _ in range(REST_SECONDS):
            if self._syncs() >= RESTED * self.usual_syncs:
                return
            await asyncio.sleep(1)

    def _syncs(self) -> float:
        """The median of some samples, because other users of the disk delay single ones."""
        with (self._directory / "sync").open("wb", buffering=0) as file:
            return median(_sample(file) for _ in range(SAMPLES))


def _sample(file: FileIO) -> float:
    began = perf_counter()
    for _ in range(SYNCS):
        file.seek(0)
        file.write(b"x" * 8192)
        os.fdatasync(file.fileno())
    return SYNCS / (perf_counter() - began)
