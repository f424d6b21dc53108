"""Breaks the invariants of submissions."""

from __future__ import annotations

import random
from uuid import UUID

import msgspec

from tests.chaos.checker.history import History
from tests.chaos.mutants.mutant import a_job, a_request, a_run, breaks, changes_of, forget, insert_after, the_end


@breaks(1)
def an_acknowledged_job_is_lost(history: History, chance: random.Random) -> None:
    forget(history, history.by_id[a_request(history, chance, "job").ids[0]])


@breaks(1)
def an_acknowledged_recurring_job_is_lost(history: History, chance: random.Random) -> None:
    job = a_job(history, chance)
    history.jobs.remove(job)


@breaks(2)
def a_run_is_stored_twice(history: History, chance: random.Random) -> None:
    run = a_run(history, chance)
    first = changes_of(history, run)[0]
    insert_after(history, first, transaction=10**9)


@breaks(2)
def a_run_is_live_and_in_history(history: History, chance: random.Random) -> None:
    history.runs.append(msgspec.structs.replace(a_run(history, chance), is_live=True, state="ready"))


@breaks(3)
def a_key_makes_two_jobs(history: History, chance: random.Random) -> None:
    request = a_request(history, chance, "keyed")
    another = chance.choice([run.id for run in history.runs if run.id not in request.ids])
    history.journal.append(msgspec.structs.replace(request, ids=[another]))


@breaks(3)
def a_key_is_said_to_have_made_its_job_twice(history: History, chance: random.Random) -> None:
    request = a_request(history, chance, "keyed")
    history.journal += [msgspec.structs.replace(request, was_created=True)] * 2


@breaks(35)
def a_run_nobody_stored_is_there(history: History, chance: random.Random) -> None:
    run = a_run(history, chance)
    history.runs.append(msgspec.structs.replace(run, id=str(UUID(int=chance.getrandbits(128)))))


@breaks(35)
def a_run_vanishes(history: History, chance: random.Random) -> None:
    history.runs.remove(a_run(history, chance))


@breaks(36)
def a_live_run_is_deleted(history: History, chance: random.Random) -> None:
    run = a_run(history, chance)
    history.changes.remove(the_end(history, run))
