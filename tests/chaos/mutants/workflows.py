"""Breaks the invariants of workflows."""

from __future__ import annotations

import random

from tests.chaos.checker.history import History
from tests.chaos.mutants.mutant import breaks, changes_of, insert_after, the_claim, the_end


@breaks(21)
def a_child_starts_before_its_parent_has_ended(history: History, chance: random.Random) -> None:
    run = chance.choice([run for run in history.runs if run.step == "b"])
    claim = the_claim(history, run)
    history.changes.remove(claim)
    history.changes.insert(0, claim)
    for seq, change in enumerate(history.changes, 1):
        change.seq = seq


@breaks(22)
def a_step_is_let_go_twice(history: History, chance: random.Random) -> None:
    run = chance.choice([run for run in history.runs if run.step == "b"])
    (let_go,) = [change for change in changes_of(history, run) if change.before == "waiting"]
    insert_after(history, let_go)


@breaks(22)
def a_join_is_never_let_go(history: History, chance: random.Random) -> None:
    run = chance.choice([run for run in history.runs if run.step == "b"])
    run.is_live, run.state, run.finished_at = True, "waiting", 0
    history.changes[:] = [change for change in history.changes if change.run_id != run.id or change.kind == "insert"]


@breaks(23)
def a_step_runs_that_was_to_be_skipped(history: History, chance: random.Random) -> None:
    chance.choice([run for run in history.runs if run.step == "d"]).state = "succeeded"


@breaks(24)
def a_workflow_succeeds_although_a_step_failed(history: History, chance: random.Random) -> None:
    workflow = chance.choice(history.workflows)
    (whole,) = [run for run in history.runs if run.id == workflow.id]
    whole.state = the_end(history, whole).after = "succeeded"
