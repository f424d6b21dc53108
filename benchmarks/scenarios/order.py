"""All scenarios, in the order in which they run."""

from __future__ import annotations

from typing import Protocol

from benchmarks.bench import Bench
from benchmarks.report import Result
from benchmarks.rivals import brokers, compare, waits
from benchmarks.scenarios import (
    beside,
    checks,
    commands,
    drain,
    due_at_once,
    every_second,
    fire_burst,
    growth,
    http,
    idle,
    latency,
    map_items,
    memory,
    overhead,
    remote,
    steady,
    steps,
    submit,
    tick_cost,
    watching,
)


class Scenario(Protocol):
    """The interface of a scenario module."""

    NAME: str
    TITLE: str

    async def measure(self, bench: Bench) -> Result: ...


ALL: tuple[Scenario, ...] = (
    drain,
    steady,
    submit,
    http,
    checks,
    latency,
    due_at_once,
    every_second,
    fire_burst,
    tick_cost,
    overhead,
    commands,
    beside,
    growth,
    steps,
    map_items,
    memory,
    idle,
    remote,
    watching,
)
WITH_RIVALS: tuple[Scenario, ...] = (compare, waits, brokers)
"""They install other systems, so they run only on request."""
