"""Good histories with one thing wrong in each: what a checker that is worth anything must notice, and by which
invariant."""

from __future__ import annotations

import random
from collections.abc import Callable
from uuid import UUID

import msgspec

from foliot.model.ids import tick_run_id
from tests.chaos.checker.attempts import is_claim
from tests.chaos.checker.history import SECOND, Change, Effect, History, Request, Run
from tests.chaos.good import BACK_AT, DIES_AT, DYING, LENGTH, MOMENT, START

Mutate = Callable[[History, random.Random], None]
ALL: list[tuple[int, Mutate]] = []


def breaks(number: int) -> Callable[[Mutate], Mutate]:
    """Declares a mutant of the invariant with this number."""

    def declare(mutate: Mutate) -> Mutate:
        ALL.append((number, mutate))
        return mutate

    return declare


def a_run(history: History, chance: random.Random, **wanted: object) -> Run:
    """Any one that is like this; a plain one, unless something else is asked for."""
    plain = {
        "job_id": "",
        "parent_id": "",
        "task": "effect",
        "state": "succeeded",
        "lost": 0,
        "concurrency_key": "",
        "guarantee": "",
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
    """Another change of the same run, right after this one; those behind it are numbered anew."""
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


def a_tick(history: History, chance: random.Random) -> Run:
    return chance.choice([run for run in history.runs if run.job_id])


@breaks(1)
def an_acknowledged_job_is_lost(history: History, chance: random.Random) -> None:
    forget(history, history.by_id[a_request(history, chance, "job").ids[0]])


@breaks(1)
def an_acknowledged_recurring_job_is_lost(history: History, chance: random.Random) -> None:
    job = chance.choice(history.jobs)
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


@breaks(4)
def a_tick_fires_twice(history: History, chance: random.Random) -> None:
    run = a_tick(history, chance)
    history.runs.append(msgspec.structs.replace(run))


@breaks(5)
def a_tick_is_silently_missed(history: History, chance: random.Random) -> None:
    forget(history, a_tick(history, chance))


@breaks(5)
def a_tick_is_a_run_and_noted_as_missed(history: History, chance: random.Random) -> None:
    job = chance.choice(history.jobs)
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
    chance.choice(history.jobs).next_at += 40 * SECOND


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


@breaks(7)
def a_ready_run_waits_for_minutes(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, attempt=1)
    first = changes_of(history, run)[0]
    first.at -= 120 * SECOND


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


@breaks(9)
def two_workers_hold_one_token(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, attempt=2)
    claim = the_claim(history, run)
    claim.token -= 1


@breaks(9)
def an_attempt_is_left_out(history: History, chance: random.Random) -> None:
    the_claim(history, a_run(history, chance, attempt=2)).attempt += 1


@breaks(9)
def a_run_changes_hands_without_a_claim(history: History, chance: random.Random) -> None:
    claim = the_claim(history, a_run(history, chance))
    insert_after(history, claim, before="running", worker_id="w9", transaction=10**9)


@breaks(10)
def a_stale_token_is_accepted(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, attempt=2)
    the_end(history, run).token -= 1


@breaks(10)
def a_zombie_finishes_what_another_holds(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, lost=1)
    end = the_end(history, run)
    end.worker_id, end.writer = DYING


@breaks(10)
def another_process_writes_with_a_workers_name(history: History, chance: random.Random) -> None:
    the_end(history, a_run(history, chance)).writer = "node_77"


@breaks(11)
def a_run_ends_twice(history: History, chance: random.Random) -> None:
    end = the_end(history, a_run(history, chance))
    insert_after(history, end, after="failed", transaction=10**9)


@breaks(11)
def a_terminal_state_changes(history: History, chance: random.Random) -> None:
    a_run(history, chance).state = "failed"


@breaks(11)
def an_ended_run_is_revived(history: History, chance: random.Random) -> None:
    run = a_run(history, chance)
    run.is_live, run.state, run.finished_at = True, "running", 0


@breaks(12)
def a_skipped_run_was_running(history: History, chance: random.Random) -> None:
    run = a_run(history, chance)
    the_end(history, run).after = run.state = "skipped"


@breaks(12)
def a_transition_is_missing(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, attempt=2)
    (back,) = [change for change in changes_of(history, run) if change.before == "running" and change.kind == "update"][
        :1
    ]
    history.changes.remove(back)


@breaks(13)
def one_retry_too_many(history: History, chance: random.Random) -> None:
    a_run(history, chance, attempt=2).retries = 0


@breaks(13)
def lost_more_often_than_may_be(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, lost=1)
    run.lost, run.attempt = 4, 5


@breaks(14)
def a_retry_does_not_wait(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, attempt=2)
    (back,) = [
        change for change in changes_of(history, run) if change.before == "running" and change.after == "scheduled"
    ]
    back.due_at = the_claim(history, run).at + SECOND


@breaks(15)
def an_attempt_outlives_its_limit(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, attempt=1)
    run.timeout_seconds = 1
    for change in changes_of(history, run)[:2]:
        change.at -= 60 * SECOND


@breaks(15)
def an_attempt_outlives_its_limit_by_seconds(history: History, chance: random.Random) -> None:
    history.settings.grace_seconds = 5
    history.faults.clear()
    run = a_run(history, chance, attempt=1)
    run.timeout_seconds = 1
    for change in changes_of(history, run)[:2]:
        change.at -= 12 * SECOND


@breaks(16)
def a_living_workers_runs_are_taken(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, lost=1)
    next(change for change in changes_of(history, run) if change.lost).at = DIES_AT + SECOND


@breaks(16)
def a_dead_worker_is_noticed_late(history: History, chance: random.Random) -> None:
    for change in history.changes:
        if change.lost and change.before == "running":
            change.at += 3 * SECOND


@breaks(16)
def a_claim_of_a_dead_worker_is_noticed_late(history: History, chance: random.Random) -> None:
    for lease in history.leases:
        if lease.id == DYING[0]:
            lease.at -= 40 * SECOND
            lease.expires_at -= 40 * SECOND
            lease.expired_at -= 40 * SECOND


@breaks(17)
def a_job_goes_on_without_its_worker(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, lost=1)
    history.ledger.append(Effect(DIES_AT + 30 * SECOND, "work", run.id, 1, 3))


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
    job = chance.choice(history.jobs)
    job.next_at = history.settings.quiet_at - 40 * SECOND


@breaks(19)
def once_only_starts_twice(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, guarantee="at_most_once")
    history.ledger.append(Effect(run.finished_at + SECOND, "start", run.id, 2, 1))


@breaks(19)
def once_only_starts_twice_under_one_token(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, guarantee="at_most_once")
    history.ledger.append(Effect(run.finished_at - MOMENT, "start", run.id, run.token, 1))


@breaks(42)
def a_worker_starts_its_own_run_again(history: History, chance: random.Random) -> None:
    run = a_run(history, chance)
    start = next(effect for effect in history.ledger if effect.run_id == run.id and effect.kind == "start")
    history.ledger.append(msgspec.structs.replace(start, at=start.at + MOMENT))


@breaks(20)
def a_job_runs_without_a_claim(history: History, chance: random.Random) -> None:
    run = a_run(history, chance)
    history.ledger.append(Effect(run.finished_at - MOMENT, "start", run.id, run.token + 1, 1))


@breaks(20)
def a_success_did_nothing(history: History, chance: random.Random) -> None:
    run = a_run(history, chance)
    history.ledger[:] = [effect for effect in history.ledger if effect.run_id != run.id or effect.kind != "finish"]


@breaks(20)
def a_transaction_takes_effect_twice(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, guarantee="transactional")
    history.ledger.append(
        next(effect for effect in history.ledger if effect.run_id == run.id and effect.kind == "commit")
    )


@breaks(20)
def a_transaction_takes_no_effect(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, guarantee="transactional")
    history.ledger[:] = [effect for effect in history.ledger if effect.run_id != run.id or effect.kind != "commit"]


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


@breaks(25)
def one_more_runs_than_the_limit(history: History, chance: random.Random) -> None:
    key = chance.choice([run.concurrency_key for run in history.runs if run.concurrency_key])
    for run in history.runs:
        if run.concurrency_key == key:
            run.concurrency_limit = 1


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


@breaks(31)
def too_much_output_is_kept(history: History, chance: random.Random) -> None:
    a_run(history, chance).output_bytes = 1 << 20


@breaks(34)
def a_run_ends_before_it_starts(history: History, chance: random.Random) -> None:
    run = a_run(history, chance)
    run.finished_at = run.started_at - 1


@breaks(34)
def time_steps_back(history: History, chance: random.Random) -> None:
    chance.choice(history.changes[len(history.changes) // 2 :]).at -= 30 * SECOND


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


@breaks(40)
def a_late_tick_hides_its_lateness(history: History, chance: random.Random) -> None:
    run = a_tick(history, chance)
    changes_of(history, run)[0].due_at = run.created_at


@breaks(41)
def a_missed_tick_is_called_overlapped(history: History, chance: random.Random) -> None:
    chance.choice(history.jobs).notes[0].reason = "overlap"
