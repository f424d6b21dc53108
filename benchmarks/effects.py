"""Counts the effects of jobs in a shared memory file with a slot for each job, which reveals lost and repeated work.

Each worker process has a region of its own, so that no two write to the same slot. A slot holds when the job started,
in nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share, and how often. It uses only the standard
library, because rivals import it, too.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

PLACE = struct.Struct("=QQ")
PATIENCE_SECONDS = 60.0
PATH_VARIABLE, JOBS_VARIABLE, REGION_VARIABLE = "BENCH_EFFECTS", "BENCH_JOBS", "BENCH_REGION"


class Recorder:
    """The side of a worker process."""

    def __init__(self) -> None:
        with Path(os.environ[PATH_VARIABLE]).open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._start = int(os.environ.get(REGION_VARIABLE, "0")) * int(os.environ[JOBS_VARIABLE]) * PLACE.size

    def record(self, number: int) -> None:
        at = self._start + number * PLACE.size
        first, times = PLACE.unpack_from(self._map, at)
        PLACE.pack_into(self._map, at, first or time.monotonic_ns(), times + 1)


@dataclass(frozen=True, slots=True)
class Counted:
    started: dict[int, float]
    """When each job first started, in seconds of the shared clock."""
    lost: int
    doubled: int

    @property
    def seconds(self) -> float:
        """The time from the first start to the last."""
        return max(self.started.values()) - min(self.started.values())


class Effects:
    """The side of the measuring process."""

    def __init__(self, path: Path, jobs: int, regions: int = 1) -> None:
        self.path, self.jobs, self._regions = path, jobs, regions
        with path.open("wb") as file:
            file.truncate(jobs * regions * PLACE.size)

    def variables(self, region: int = 0) -> dict[str, str]:
        """The environment variables of a worker."""
        return {PATH_VARIABLE: str(self.path), JOBS_VARIABLE: str(self.jobs), REGION_VARIABLE: str(region)}

    def count(self) -> Counted:
        places = list(PLACE.iter_unpack(self.path.read_bytes()))
        started, doubled = {}, 0
        for number in range(self.jobs):
            found = [places[region * self.jobs + number] for region in range(self._regions)]
            times = sum(how_often for _, how_often in found)
            doubled += times > 1
            if times:
                started[number] = min(first for first, how_often in found if how_often) / 1e9
        return Counted(started, self.jobs - len(started), doubled)

    async def until_started(self, number: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.started() < number:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    def started(self) -> int:
        """The number of jobs that have started so far; cheap enough to poll."""
        content = self.path.read_bytes()
        return sum(1 for first, _ in PLACE.iter_unpack(content) if first)
