"""Breaks the invariants of attempts."""

from __future__ import annotations

import random

import msgspec

from tests.chaos.checker.history import SECOND, Effect, History
from tests.chaos.good import DIES_AT, DYING, MOMENT
from tests.chaos.mutants.mutant import a_run, breaks, changes_of, insert_after, the_claim, the_end


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
def a_scheduled_run_is_skipped(history: History, chance: random.Random) -> None:
    run = a_run(history, chance, attempt=2)
    claim = next(change for change in changes_of(history, run) if change.before == "scheduled")
    claim.after = "skipped"


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
