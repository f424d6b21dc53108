"""Breaks the invariants of durable functions."""

from __future__ import annotations

import random

import msgspec

from tests.chaos.checker.history import History, Record
from tests.chaos.mutants.mutant import a_run, breaks

LAST = 1 << 62
"""A sequence number after all others."""


def a_record(history: History, chance: random.Random, kind: str, name: str) -> Record:
    run = a_run(history, chance, task="durable", attempt=2)
    return next(one for one in history.records if (one.run_id, one.kind, one.name) == (run.id, kind, name))


def add(history: History, record: Record, **fields: object) -> None:
    history.records.append(msgspec.structs.replace(record, seq=LAST, **fields))


@breaks(43)
def a_step_is_recorded_twice(history: History, chance: random.Random) -> None:
    add(history, a_record(history, chance, "done", "right"))


@breaks(43)
def a_recorded_result_changes(history: History, chance: random.Random) -> None:
    add(history, a_record(history, chance, "done", "first"), kind="change")


@breaks(43)
def a_worker_that_lost_the_run_records_a_step(history: History, chance: random.Random) -> None:
    a_record(history, chance, "done", "right").token -= 1


@breaks(43)
def a_transaction_commits_without_a_claim(history: History, chance: random.Random) -> None:
    a_record(history, chance, "effect", "paid").token += 1


@breaks(44)
def a_step_of_a_success_is_missing(history: History, chance: random.Random) -> None:
    history.records.remove(a_record(history, chance, "done", "left"))


@breaks(44)
def a_transaction_of_a_function_takes_effect_twice(history: History, chance: random.Random) -> None:
    add(history, a_record(history, chance, "effect", "paid"))


@breaks(44)
def a_transaction_of_a_function_is_recorded_without_effect(history: History, chance: random.Random) -> None:
    history.records.remove(a_record(history, chance, "effect", "paid"))
