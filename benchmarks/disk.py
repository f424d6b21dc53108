"""How quick the disk is. Gigabytes at once keep it busy for longer than PostgreSQL waits for it, and every commit with
it."""

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
        """Returns when it is about as quick as it was at first, or when that takes too long."""
        for _ in range(REST_SECONDS):
            if self._syncs() >= RESTED * self.usual_syncs:
                return
            await asyncio.sleep(1)

    def _syncs(self) -> float:
        """In the middle of some samples: who else uses the disk makes it wait now and then."""
        with (self._directory / "sync").open("wb", buffering=0) as file:
            return median(_sample(file) for _ in range(SAMPLES))


def _sample(file: FileIO) -> float:
    began = perf_counter()
    for _ in range(SYNCS):
        file.seek(0)
        file.write(b"x" * 8192)
        os.fdatasync(file.fileno())
    return SYNCS / (perf_counter() - began)
