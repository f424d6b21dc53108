"""Breaks the invariants of recovery."""

from __future__ import annotations

import random

from tests.chaos.checker.history import SECOND, History
from tests.chaos.good import BACK_AT, LENGTH, START
from tests.chaos.mutants.mutant import breaks


def nothing_ends(history: History, since: int, seconds: int) -> None:
    history.changes[:] = [
        change
        for change in history.changes
        if change.kind != "finish" or not since <= change.at < since + seconds * SECOND
    ]


@breaks(37)
def throughput_stays_low_after_a_fault(history: History, chance: random.Random) -> None:
    nothing_ends(history, next(fault for fault in history.faults if fault.kind == "stop").healed_at, 42)


@breaks(37)
def throughput_does_not_come_back_at_all(history: History, chance: random.Random) -> None:
    nothing_ends(history, BACK_AT, 3600)


@breaks(38)
def postgres_is_back_and_nobody_notices(history: History, chance: random.Random) -> None:
    nothing_ends(history, BACK_AT, 7)


@breaks(39)
def a_worker_leaks(history: History, chance: random.Random) -> None:
    for sample in history.memory:
        if sample.target == "worker-1":
            sample.bytes += int(25_000_000 * (sample.at - START) / LENGTH)


@breaks(39)
def a_large_process_leaks_a_little(history: History, chance: random.Random) -> None:
    for sample in history.memory:
        if sample.target == "server-1":
            sample.bytes += int(50_000_000 * (sample.at - START) / LENGTH)
