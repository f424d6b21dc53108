"""Breaks the invariants of the claim order."""

from __future__ import annotations

import random

from tests.chaos.checker.history import SECOND, History
from tests.chaos.good import DIES_AT, START
from tests.chaos.mutants.mutant import breaks, changes_of


@breaks(27)
def an_urgent_run_is_passed_over(history: History, chance: random.Random) -> None:
    """It is ready for half a minute while others are taken."""
    run = chance.choice(
        [
            run
            for run in history.runs
            if not run.job_id and run.attempt == 1 and START + 60 * SECOND < run.created_at < DIES_AT
        ]
    )
    run.priority = 1
    first = changes_of(history, run)[0]
    first.at -= 30 * SECOND
    first.after = "ready"
    history.changes.sort(key=lambda change: change.at)
    for seq, change in enumerate(history.changes, 1):
        change.seq = seq
