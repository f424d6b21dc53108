"""Requeues the runs of dead workers, and fails the runs that have lost too many workers.

A worker is dead when its lease has expired on the database's clock, never because a job takes long. The reaper removes
the worker first, so that a late heartbeat learns of it, and then undoes its claims. The next claim raises the token, so
later writes of the dead worker match nothing. Any number of reapers may run.

The database's clock may be set. If it is set back, leases of dead workers would last longer, so the reaper shortens
them. If it is set forward, leases of live workers expire too: their runs start again elsewhere, and tokens reject the
writes of the first attempts.
"""

from __future__ import annotations

from uuid import UUID

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import ClockSetBack, EventBus, RunsLost
from foliot.service import Service
from foliot.store.store import Store

BATCH = 1000
OUTPUTS = 20
CLOCK_LOOK_SECONDS = 10.0
"""Clocks are rarely set, so rare checks are enough."""


class Reaper(Service):
    def __init__(self, *, store: Store, config: Config, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._config = config
        self._clock_look_at = 0.0
        self._lost_attempts: list[tuple[UUID, int]] = []
        """Lost attempts whose streamed output is still to be kept. If this process dies, it stays in `logs`."""

    async def run_once(self) -> float:
        return await self.each(self._shorten_leases, self._remove_dead_workers, self._requeue_runs, self._keep_outputs)

    async def _shorten_leases(self) -> float:
        if self.clock.monotonic() < self._clock_look_at:
            return self._config.reaper_seconds
        self._clock_look_at = self.clock.monotonic() + CLOCK_LOOK_SECONDS
        if (seconds := await self._store.workers.shorten_leases()) is not None:
            self.events.emit(ClockSetBack(round(seconds, 3)))
        return self._config.reaper_seconds

    async def _remove_dead_workers(self) -> float:
        await self._store.workers.remove_dead_workers()
        return self._config.reaper_seconds

    async def _requeue_runs(self) -> float:
        lost = await self._store.lost_runs.lose_runs(BATCH, self._config.lost_attempts_max)
        if lost.requeued or lost.buried:
            self._store.hints.send(lost.queues)
            self.events.emit(RunsLost(lost.requeued, lost.buried))
        self._lost_attempts += lost.attempts
        return 0 if lost.requeued + lost.buried == BATCH else self._config.reaper_seconds

    async def _keep_outputs(self) -> float:
        """Keeps the output that lost attempts had streamed, a few attempts at a time, because runs come first."""
        attempts = self._lost_attempts[:OUTPUTS]
        if not attempts:
            return self._config.reaper_seconds
        await self._store.logs.keep_streamed(attempts, self._config.output_max_bytes)
        del self._lost_attempts[: len(attempts)]
        return 0 if self._lost_attempts else self._config.reaper_seconds
