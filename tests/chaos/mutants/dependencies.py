"""Breaks the invariant of jobs with dependencies."""

from __future__ import annotations

import random

from tests.chaos.checker.history import History, Job, Run
from tests.chaos.mutants.mutant import breaks, changes_of, forget, the_claim, the_end


def a_dependent(history: History, chance: random.Random, state: str = "succeeded") -> Run:
    """A one-off run with dependencies."""
    runs = [run for run in history.runs if run.upstream and not run.parent_id and not run.job_id]
    return chance.choice([run for run in runs if run.state == state])


def fired(history: History, job: Job) -> list[Run]:
    return [run for run in history.runs if run.job_id == job.id]


def a_fired_job(history: History, chance: random.Random, dependencies: int) -> Job:
    return chance.choice([job for job in history.jobs if job.is_fired and len(job.dependencies) == dependencies])


@breaks(45)
def a_dependent_starts_before_its_dependency_has_ended(history: History, chance: random.Random) -> None:
    run = a_dependent(history, chance)
    claim = the_claim(history, run)
    history.changes.remove(claim)
    history.changes.insert(0, claim)
    for seq, change in enumerate(history.changes, 1):
        change.seq = seq


@breaks(45)
def a_dependent_runs_although_its_dependency_failed(history: History, chance: random.Random) -> None:
    run = a_dependent(history, chance, "skipped")
    run.state = the_end(history, run).after = "succeeded"


@breaks(45)
def a_dependent_is_skipped_for_nothing(history: History, chance: random.Random) -> None:
    run = a_dependent(history, chance)
    run.state = the_end(history, run).after = "skipped"


@breaks(45)
def a_dependent_is_stranded(history: History, chance: random.Random) -> None:
    run = a_dependent(history, chance)
    run.is_live, run.state, run.finished_at = True, "waiting", 0
    kept = changes_of(history, run)[:1]
    history.changes[:] = [change for change in history.changes if change.run_id != run.id or change in kept]


@breaks(45)
def a_success_does_not_fire_its_dependent(history: History, chance: random.Random) -> None:
    forget(history, chance.choice(fired(history, a_fired_job(history, chance, 1))))


@breaks(45)
def a_success_fires_its_dependent_twice(history: History, chance: random.Random) -> None:
    first, second = chance.sample(fired(history, a_fired_job(history, chance, 1)), 2)
    second.upstream = list(first.upstream)


@breaks(45)
def the_last_successes_do_not_fire_their_dependent(history: History, chance: random.Random) -> None:
    runs = fired(history, a_fired_job(history, chance, 2))
    forget(history, max(runs, key=lambda run: run.created_at))
