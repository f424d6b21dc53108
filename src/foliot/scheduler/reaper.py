"""Gives back the runs of workers that went silent, and buries those that have now cost too many workers.

A worker is dead when its lease is over on the database's clock, never because a job took long. It is struck off first,
so that a beat that comes late learns of it, and only then are its claims undone; the grown token of the next claim
refuses whatever the dead one still writes. Any number of reapers may run.

The database's clock may be set. Set back, it would prolong the leases of the dead by as much: those are shortened. Set
forward, it ends the leases of the living as well: their runs start again elsewhere, and tokens refuse what the first
attempts still write.
"""

from __future__ import annotations

from uuid import UUID

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import ClockSetBack, EventBus, RunsLost
from foliot.model.log_text import capped
from foliot.service import Service
from foliot.store.store import Store

BATCH = 1000
OUTPUTS = 20
CLOCK_LOOK_SECONDS = 10.0
"""Clocks are seldom set, so looking for it may be seldom too."""


class Reaper(Service):
    def __init__(self, *, store: Store, config: Config, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._config = config
        self._clock_look_at = 0.0
        self._silenced: list[tuple[UUID, int]] = []
        """Attempts that were lost, and whose output may be among what they had shown. Should this process die, it stays
        there."""

    async def run_once(self) -> float:
        return await self.each(self._shorten_leases, self._strike_off, self._give_back, self._keep_outputs)

    async def _shorten_leases(self) -> float:
        if self.clock.monotonic() < self._clock_look_at:
            return self._config.reaper_seconds
        self._clock_look_at = self.clock.monotonic() + CLOCK_LOOK_SECONDS
        if (seconds := await self._store.workers.shorten_leases()) is not None:
            self.events.emit(ClockSetBack(round(seconds, 3)))
        return self._config.reaper_seconds

    async def _strike_off(self) -> float:
        await self._store.workers.remove_dead_workers()
        return self._config.reaper_seconds

    async def _give_back(self) -> float:
        lost = await self._store.runs.lose_runs(BATCH, self._config.lost_attempts_max)
        if lost.requeued or lost.buried:
            self._store.hints.send(lost.queues)
            self.events.emit(RunsLost(lost.requeued, lost.buried))
        self._silenced += lost.attempts
        return 0 if lost.requeued + lost.buried == BATCH else self._config.reaper_seconds

    async def _keep_outputs(self) -> float:
        """What lost attempts had shown of their output is all there will ever be of it. A few at a time: runs come
        first."""
        attempts = self._silenced[:OUTPUTS]
        if not attempts:
            return self._config.reaper_seconds
        shown = await self._store.logs.read_parts(attempts)
        if shown:
            kept = {attempt: capped(output, self._config.output_max_bytes) for attempt, output in shown.items()}
            await self._store.logs.keep_lost_outputs(kept)
            await self._store.logs.delete_logs(list(shown))
        del self._silenced[: len(attempts)]
        return 0 if self._silenced else self._config.reaper_seconds
