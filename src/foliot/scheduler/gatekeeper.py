"""Lets held runs pass when the limits of their keys allow, ends pauses whose time has come, and sends a probe through an open circuit.

Limits are kept outside of the claim, so that plain runs pay nothing for them: a run with a key is stored as held, and becomes ready here.
One gatekeeper works at a time, under a lock of the transaction, because what it counts it then uses up; any number may run.
"""

from __future__ import annotations

from foliot.clock import Clock
from foliot.events import EventBus, RunsAdmitted
from foliot.service import Service
from foliot.store.hints import ALL_QUEUES_TOPIC, GATES_TOPIC, worker_topic
from foliot.store.store import Store

INTERVAL_SECONDS = 0.2


class Gatekeeper(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store

    async def run_once(self) -> float:
        gates, hints = self._store.gates, self._store.hints
        in_use = await gates.gates_in_use()
        if in_use.circuits:
            hints.send(await gates.send_probes())
        if in_use.pauses:
            hints.send([name if kind == "queue" else ALL_QUEUES_TOPIC for kind, name in await gates.end_pauses()])
        if not in_use.limits:
            return INTERVAL_SECONDS
        admitted, ousted = await gates.admit_runs()
        hints.send([*admitted, *map(worker_topic, ousted)])
        if not admitted:
            return INTERVAL_SECONDS
        self.events.emit(RunsAdmitted(len(admitted)))
        return 0

    def hinted(self, topic: str) -> None:
        """Something waits for a limit, or made room."""
        if topic == GATES_TOPIC:
            self.wake()
