"""One file a scenario: its `NAME`, its `TITLE`, and `async def measure(bench) -> Result`."""

from __future__ import annotations

from typing import Protocol

from benchmarks.bench import Bench
from benchmarks.report import Result
from benchmarks.scenarios import drain


class Scenario(Protocol):
    """What each of the modules here is."""

    NAME: str
    TITLE: str

    async def measure(self, bench: Bench) -> Result: ...


ALL: tuple[Scenario, ...] = (drain,)
