"""Announces submitted runs after their transaction has committed: a worker woken earlier would find nothing."""

from __future__ import annotations

from collections.abc import Collection

from foliot.events import RunsSubmitted
from foliot.model.states import RunState
from foliot.store.hints import GATES_TOPIC
from foliot.store.store import Store


def announce_runs(store: Store, stored: Collection[tuple[str, RunState]], new: int) -> None:
    """Wakes the workers of ready runs and the gatekeeper of held ones. `stored` has the queue and state of each run."""
    store.hints.send({queue for queue, state in stored if state is RunState.READY})
    if any(state is RunState.HELD for _, state in stored):
        store.hints.send([GATES_TOPIC])
    if new:
        store.events.emit(RunsSubmitted(new))
