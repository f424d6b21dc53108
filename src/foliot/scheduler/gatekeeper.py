"""Admits held runs within the limits of their keys, ends pauses on time, and sends a probe through an open circuit.

Limits are not part of the claim, so that runs without limits pay nothing for them: a run with a limit is stored as held
and becomes ready here. Any number of gatekeepers may run; a transaction lock lets one work at a time, because the
places that one counts must not be given away by another.

A step with a condition is held until the condition is decided here, before it waits for anything else.

Claims skip runs of a paused task, of an open circuit and of a task that the worker does not know. The gatekeeper parks
long lines of such runs, and brings them back when they may start.
"""

from __future__ import annotations

from foliot.clock import Clock
from foliot.events import EventBus, RunsAdmitted
from foliot.scheduler.conditions import decide_conditions
from foliot.service import Service
from foliot.store.hints import ALL_QUEUES_TOPIC, GATES_TOPIC, worker_topic
from foliot.store.pending_work import GatesInUse
from foliot.store.store import Store

INTERVAL_SECONDS = 0.2
PARK_SECONDS = 1.0
"""Time between two checks for long lines of runs that may not start."""


class Gatekeeper(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._look_at = 0.0
        self._swept = ("", "")
        self._in_use = GatesInUse()

    async def run_once(self) -> float:
        self._in_use = await self._store.pending_work.gates_in_use()
        return await self.each(
            self._decide_conditions, self._send_probes, self._end_pauses, self._order_lines, self._admit_runs
        )

    async def _decide_conditions(self) -> float:
        # The end of one step may have let others go, and a passed one may wait for a limit.
        return 0 if self._in_use.conditions and await decide_conditions(self._store) else INTERVAL_SECONDS

    async def _send_probes(self) -> float:
        if self._in_use.circuits:
            self._store.hints.send(await self._store.circuit_breaker.send_probes())
        return INTERVAL_SECONDS

    async def _end_pauses(self) -> float:
        if self._in_use.pauses:
            ended = await self._store.pauses.end_pauses()
            self._store.hints.send([name if kind == "queue" else ALL_QUEUES_TOPIC for kind, name in ended])
        return INTERVAL_SECONDS

    async def _order_lines(self) -> float:
        """Parks long lines of runs that may not start, and brings them back when they may."""
        parked_runs, moved = self._store.parked_runs, 0
        if self._in_use.parked:
            back = await parked_runs.unpark_runs()
            self._store.hints.send(set(back))
            moved = len(back)
        if not moved and self.clock.monotonic() >= self._look_at:
            moved = await parked_runs.park_runs()
            self._look_at = self.clock.monotonic() + (0 if moved else PARK_SECONDS)
        return 0 if moved else INTERVAL_SECONDS

    async def _admit_runs(self) -> float:
        if not self._in_use.limits:
            return INTERVAL_SECONDS
        admission = await self._store.limits.admit_runs(self._swept)
        self._swept = admission.swept
        self._store.hints.send([*admission.queues, *map(worker_topic, admission.ousted)])
        if admission.queues:
            self.events.emit(RunsAdmitted(len(admission.queues)))
        return 0 if admission.is_more or admission.queues else INTERVAL_SECONDS

    def hinted(self, topic: str) -> None:
        """Wakes when a run waits for a limit, or has left room under one."""
        if topic == GATES_TOPIC:
            self.wake()
