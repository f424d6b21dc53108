"""Sums up each minute and hour once it is complete, for charts, and forgets old ones. Any number of recorders may run:
each minute is recorded once."""

from __future__ import annotations

from datetime import datetime, timedelta

from foliot.clock import Clock
from foliot.events import EventBus
from foliot.service import Service
from foliot.store.rollups import HOUR, KEPT, MINUTE
from foliot.store.store import Store

# After the end of a minute, until the transactions that ended runs in it have committed.
SETTLED_SECONDS = 2.0
WAIT_SECONDS = 2.0
# As long as a transaction that ends runs is waited for.
HOLD_SECONDS = 60.0
# Minutes without a live scheduler node are recorded later, as far back as this.
BACK = 60 * MINUTE


class Recorder(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store

    async def run_once(self) -> float:
        """Records one minute at a time."""
        rollups = self._store.rollups
        now = await self._store.jobs.database_now()
        last = await rollups.last_recorded(MINUTE)
        current = _start_of(now, MINUTE)
        next_minute = max(last + MINUTE, current - BACK) if last else current - MINUTE
        complete_at = next_minute + MINUTE
        if complete_at > now:
            return (complete_at - now).total_seconds() + SETTLED_SECONDS
        if await self._store.run_events.ending_horizon(HOLD_SECONDS) < complete_at:
            return WAIT_SECONDS
        await rollups.record_minute(next_minute)
        hour = _start_of(next_minute, HOUR)
        if complete_at == hour + HOUR:
            await rollups.record_hour(hour)
            await self._forget_old(now)
        return 0.0

    async def _forget_old(self, now: datetime) -> None:
        for step, kept in KEPT.items():
            while not self.stopping and await self._store.rollups.forget_rollups(step, now - kept):
                pass


def _start_of(moment: datetime, step: timedelta) -> datetime:
    seconds = int(step.total_seconds())
    return moment - timedelta(seconds=moment.timestamp() % seconds)
