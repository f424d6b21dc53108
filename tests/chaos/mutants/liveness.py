"""Breaks the invariants of progress."""

from __future__ import annotations

import random

from tests.chaos.checker.history import SECOND, History
from tests.chaos.mutants.mutant import a_job, a_run, breaks, changes_of


@breaks(7)
def a_ready_run_waits_for_minutes(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, attempt=1)
    first = changes_of(history, run)[0]
    first.at -= 120 * SECOND


@breaks(18)
def a_run_is_stuck(history: History, chance: random.Random) -> None:
    run = a_run(history, chance)
    run.is_live, run.state, run.finished_at = True, "ready", 0


@breaks(18)
def a_claim_is_forgotten(history: History, chance: random.Random) -> None:
    run = a_run(history, chance)
    run.is_live, run.state, run.finished_at = True, "running", 0


@breaks(18)
def a_schedule_stops(history: History, chance: random.Random) -> None:
    job = a_job(history, chance)
    job.next_at = history.settings.quiet_at - 40 * SECOND
