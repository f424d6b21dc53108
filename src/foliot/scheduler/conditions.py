"""Evaluates the conditions of steps whose rules are met.

Nodes that decide at the same time come to the same, because the outcome of a step that has ended never changes. The
second one changes nothing: a run is held by its condition until the first has decided.
"""

from __future__ import annotations

from foliot.model.conditions import decide
from foliot.model.states import RunState
from foliot.store.hints import ALL_QUEUES_TOPIC
from foliot.store.store import Store

BATCH = 200


async def decide_conditions(store: Store) -> int:
    """Lets runs go on, skips them or fails them, up to a batch. Returns the number of runs."""
    held = await store.conditions.list_conditions(BATCH)
    outcomes = await store.conditions.read_outcomes({step for one in held.values() for step in one.steps.values()})
    decisions = {run_id: decide(condition, outcomes) for run_id, condition in held.items()}
    passing = [run_id for run_id, decision in decisions.items() if decision.verdict == "run"]
    closing = {run_id: decision for run_id, decision in decisions.items() if decision.verdict != "run"}
    if passing:
        passed = await store.conditions.pass_conditions(passing)
        store.hints.send({queue for queue, state in passed if state is RunState.READY})
    if closing and await store.conditions.close_conditional(closing):
        # Steps after these may be ready now, in any queue.
        store.hints.send([ALL_QUEUES_TOPIC])
    return len(held)
