"""Declares mutants, and picks the parts of a history that they change."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from tests.chaos.checker.attempts import is_claim
from tests.chaos.checker.history import Change, History, Job, Request, Run

Mutate = Callable[[History, random.Random], None]
ALL: list[tuple[int, Mutate]] = []


def breaks(number: int) -> Callable[[Mutate], Mutate]:
    """Declares a mutant of the invariant with this number."""

    def declare(mutate: Mutate) -> Mutate:
        ALL.append((number, mutate))
        return mutate

    return declare


def a_run(history: History, chance: random.Random, **wanted: object) -> Run:
    """A random run with these fields; a plain one, where a field is not given."""
    plain = {
        "job_id": "",
        "parent_id": "",
        "task": "effect",
        "state": "succeeded",
        "lost": 0,
        "concurrency_key": "",
        "guarantee": "",
        "upstream": [],
    }
    wanted = plain | wanted
    return chance.choice(
        [run for run in history.runs if all(getattr(run, name) == value for name, value in wanted.items())]
    )


def changes_of(history: History, run: Run) -> list[Change]:
    return [change for change in history.changes if change.run_id == run.id]


def the_claim(history: History, run: Run) -> Change:
    return [change for change in changes_of(history, run) if is_claim(change)][-1]


def the_end(history: History, run: Run) -> Change:
    return next(change for change in changes_of(history, run) if change.kind == "finish")


def insert_after(history: History, place: Change, /, **fields: object) -> Change:
    """Inserts another change of the same run right after this one, and renumbers the changes behind it."""
    change = msgspec.structs.replace(place, **fields)
    history.changes.insert(history.changes.index(place) + 1, change)
    for seq, other in enumerate(history.changes, 1):
        other.seq = seq
    return change


def forget(history: History, run: Run) -> None:
    history.runs.remove(run)
    history.changes[:] = [change for change in history.changes if change.run_id != run.id]
    history.ledger[:] = [effect for effect in history.ledger if effect.run_id != run.id]


def a_request(history: History, chance: random.Random, kind: str) -> Request:
    return chance.choice([request for request in history.journal if request.kind == kind and request.status])


def a_job(history: History, chance: random.Random) -> Job:
    """A random job with a schedule."""
    return chance.choice([job for job in history.jobs if not job.is_fired])


def a_tick(history: History, chance: random.Random) -> Run:
    jobs = {job.id for job in history.jobs if not job.is_fired}
    return chance.choice([run for run in history.runs if run.job_id in jobs])
