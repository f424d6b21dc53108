"""Invariants of durable functions: what is recorded of them, and under which claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chaos.checker.attempts import claims_of
from tests.chaos.checker.history import History, Record
from tests.chaos.checker.invariant import invariant

TASK = "durable"
STEPS = frozenset({"first", "paid", "nap", "called", "left", "right"})
"""Of the task `durable`."""
TRANSACTION = "paid"


@invariant(43)
def recorded_once(history: History) -> Iterator[str]:
    """Each step of a durable function is recorded once, under the token that its run holds, and does not change."""
    for run_id, records in history.records_of.items():
        ended: set[str] = set()
        for record in records:
            if record.kind == "effect":
                continue
            if record.kind == "change" or record.name in ended:
                yield f"run {run_id}: {record.name} was recorded, and again at {record.at}"
            if record.kind == "done":
                ended.add(record.name)
        yield from _without_a_claim(history, run_id, records)


def _without_a_claim(history: History, run_id: str, records: list[Record]) -> Iterator[str]:
    claims = list(claims_of(history.changes_of.get(run_id, [])).values())
    waits: set[str] = set()
    for record in records:
        if record.kind == "done" and record.name in waits:
            # The end of a wait keeps the token under which the wait began.
            continue
        if record.kind == "begin":
            waits.add(record.name)
        held = max((claim.token for claim in claims if claim.seq < record.seq), default=0)
        if record.token != held:
            yield (
                f"run {run_id}: {record.name} at {record.at} under token {record.token}, and the run was held under "
                f"{held}"
            )


@invariant(44)
def complete(history: History) -> Iterator[str]:
    """A durable function that succeeds has recorded all its steps. Its transactions take effect once, if recorded."""
    for run in history.runs:
        if run.task != TASK:
            continue
        records = history.records_of.get(run.id, [])
        ended = {record.name for record in records if record.kind == "done"}
        if run.state == "succeeded" and ended != STEPS:
            yield f"run {run.id} succeeded, and its steps {sorted(STEPS ^ ended)} are missing or strange"
        effects = Counter(record.name for record in records if record.kind == "effect")[TRANSACTION]
        if effects != (TRANSACTION in ended):
            yield (
                f"run {run.id}: its transaction took effect {effects} times, and is "
                f"{'' if TRANSACTION in ended else 'not '}recorded"
            )
