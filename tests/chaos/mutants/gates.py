"""Breaks the invariants of limits, cancels and pauses."""

from __future__ import annotations

import random

from tests.chaos.checker.history import SECOND, History
from tests.chaos.mutants.mutant import a_request, breaks, changes_of, insert_after, the_claim


@breaks(25)
def one_more_runs_than_the_limit(history: History, chance: random.Random) -> None:
    key = chance.choice([run.concurrency_key for run in history.runs if run.concurrency_key])
    for run in history.runs:
        if run.concurrency_key == key:
            run.concurrency_limit = 1


@breaks(29)
def a_cancelled_run_starts(history: History, chance: random.Random) -> None:
    run = history.by_id[a_request(history, chance, "cancel").ids[0]]
    mark = changes_of(history, run)[1]
    insert_after(history, mark, after="running", at=run.finished_at + SECOND, began_at=run.finished_at + SECOND)


@breaks(30)
def a_paused_queue_is_claimed_from(history: History, chance: random.Random) -> None:
    request = a_request(history, chance, "pause")
    run = next(run for run in history.runs if run.queue == request.key)
    claim = the_claim(history, run)
    claim.began_at = claim.at = request.answered_at + SECOND
