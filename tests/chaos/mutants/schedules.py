"""Breaks the invariants of schedules."""

from __future__ import annotations

import random
from uuid import UUID

import msgspec

from foliot.model.ids import tick_run_id
from tests.chaos.checker.history import SECOND, History
from tests.chaos.good import MOMENT
from tests.chaos.mutants.mutant import a_job, a_tick, breaks, changes_of, forget, the_claim


@breaks(4)
def a_tick_fires_twice(history: History, chance: random.Random) -> None:
    run = a_tick(history, chance)
    history.runs.append(msgspec.structs.replace(run))


@breaks(5)
def a_tick_is_silently_missed(history: History, chance: random.Random) -> None:
    forget(history, a_tick(history, chance))


@breaks(5)
def a_tick_is_a_run_and_noted_as_missed(history: History, chance: random.Random) -> None:
    job = a_job(history, chance)
    note = job.notes[0]
    (run,) = [run for run in history.runs if run.job_id == job.id and run.tick_at == note.last_at + 20 * SECOND]
    note.last_at = run.tick_at


@breaks(5)
def a_run_is_of_no_tick(history: History, chance: random.Random) -> None:
    run = a_tick(history, chance)
    tick_at = run.tick_at + SECOND
    history.runs.append(
        msgspec.structs.replace(
            run, id=str(tick_run_id(UUID(run.job_id), tick_at // SECOND)), tick_at=tick_at, created_at=tick_at
        )
    )


@breaks(5)
def the_cursor_ran_ahead(history: History, chance: random.Random) -> None:
    a_job(history, chance).next_at += 40 * SECOND


@breaks(6)
def a_tick_fires_early(history: History, chance: random.Random) -> None:
    run = a_tick(history, chance)
    run.created_at = run.tick_at - MOMENT


@breaks(6)
def a_delayed_run_starts_early(history: History, chance: random.Random) -> None:
    run = chance.choice(
        [run for run in history.runs if run.due_at > run.created_at and run.state == "succeeded" and run.attempt == 1]
    )
    the_claim(history, run).due_at += 10 * SECOND


@breaks(8)
def an_epoch_is_used_twice(history: History, chance: random.Random) -> None:
    chance.choice([lease for lease in history.leases if lease.kind == "shard" and lease.epoch == 2]).epoch = 1


@breaks(8)
def a_shard_is_taken_from_a_living_node(history: History, chance: random.Random) -> None:
    chance.choice([lease for lease in history.leases if lease.kind == "shard" and lease.epoch == 2]).expired_at += (
        5 * SECOND
    )


@breaks(8)
def a_node_fires_for_a_shard_that_it_lost(history: History, chance: random.Random) -> None:
    run = a_tick(history, chance)
    changes_of(history, run)[0].writer = "node_77"


@breaks(26)
def two_runs_of_a_job_overlap(history: History, chance: random.Random) -> None:
    run = a_tick(history, chance)
    changes = changes_of(history, run)
    # Still under way when the next one begins.
    for change in changes[-2:]:
        history.changes.remove(change)
        change.at += 25 * SECOND
        history.changes.append(change)
    history.changes.sort(key=lambda change: change.at)
    for seq, change in enumerate(history.changes, 1):
        change.seq = seq
    if run.tick_at == max(other.tick_at for other in history.runs if other.job_id == run.job_id):
        a_tick_before = msgspec.structs.replace(changes[0], at=run.created_at + SECOND // 2)
        history.changes.append(a_tick_before)


@breaks(40)
def a_late_tick_hides_its_lateness(history: History, chance: random.Random) -> None:
    run = a_tick(history, chance)
    changes_of(history, run)[0].due_at = run.created_at


@breaks(41)
def a_missed_tick_is_called_overlapped(history: History, chance: random.Random) -> None:
    a_job(history, chance).notes[0].reason = "overlap"
