"""Counts this process's events and adds the counts to the sums in the database about once a second.

So the counters of `/metrics` outlive every process, and any server shows the counts of all. A killed process loses the
counts of its last second, and so does a lost answer: the sums may be too low, never too high.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from foliot import events
from foliot.clock import Clock
from foliot.errors import StoreUnavailable
from foliot.events import Event, EventBus
from foliot.model.histogram import Histogram
from foliot.service import Service
from foliot.store.metrics import SLOTS
from foliot.store.store import Store

FLUSH_SECONDS = 1.0
SUBMITTED, SUCCEEDED, FAILED, CANCELLED, SKIPPED = "submitted", "succeeded", "failed", "cancelled", "skipped"
RETRIED, LOST, REFUSED, FIRED, NOTED = "retried", "lost", "refused", "fired", "noted"
UNEXPORTED = "unexported."
WAITED, LASTED = "waited", "lasted"


def bucket_name(measure: str, index: int) -> str:
    return f"{measure}.{index}"


def sum_name(measure: str) -> str:
    return f"{measure}.seconds"


class Tallies(Service):
    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._slot = random.randrange(SLOTS)  # noqa: S311
        self._counted: defaultdict[str, float] = defaultdict(float)
        self._home: asyncio.AbstractEventLoop
        self._is_asleep = False
        events.subscribe(self._count)

    async def on_start(self) -> None:
        self._home = asyncio.get_running_loop()

    async def run_once(self) -> float | None:
        self._is_asleep = not await self.flush()
        return None if self._is_asleep else FLUSH_SECONDS

    async def on_stop(self) -> None:
        self._is_asleep = False
        with suppress(StoreUnavailable):
            await self.flush()

    async def flush(self) -> bool:
        """Writes the counts. Returns False if there were none."""
        counted, self._counted = self._counted, defaultdict(float)
        deltas = {name: value for name, value in counted.items() if value}
        if not deltas:
            return False
        try:
            await self._store.metrics.add_tallies(self._slot, deltas)
        except StoreUnavailable as error:
            if not error.is_doubtful:
                for name, value in deltas.items():
                    self._counted[name] += value
            raise
        return True

    def _count(self, event: Event) -> None:
        if self._is_asleep:
            self._is_asleep = False
            # Other threads emit events too.
            self._home.call_soon_threadsafe(self._home.call_later, FLUSH_SECONDS, self.wake)
        counted = self._counted
        match event:
            case events.RunsSubmitted(count):
                counted[SUBMITTED] += count
            case events.TicksFired(fired, noted):
                counted[SUBMITTED] += fired
                counted[FIRED] += fired
                counted[NOTED] += noted
            case events.RunsClaimed(_, waited):
                self._count_durations(WAITED, waited)
            case events.AttemptsEnded(_, lasted):
                self._count_durations(LASTED, lasted)
            case events.RunsFinished(succeeded, failed, cancelled, skipped):
                counted[SUCCEEDED] += succeeded
                counted[FAILED] += failed
                counted[CANCELLED] += cancelled
                counted[SKIPPED] += skipped
            case _:
                self._count_mishap(event)

    def _count_mishap(self, event: Event) -> None:
        counted = self._counted
        match event:
            case events.RunsRetried(count, snoozed):
                counted[RETRIED] += count - snoozed
            case events.RunsLost(requeued, buried):
                counted[LOST] += requeued + buried
                counted[FAILED] += buried
            case events.RunsCancelled(count):
                counted[CANCELLED] += count
            case events.RunsExpired(count):
                counted[SKIPPED] += count
            case events.StaleWritesRefused(count):
                counted[REFUSED] += count
            case events.ExportDropped(export, count):
                counted[UNEXPORTED + export] += count

    def _count_durations(self, measure: str, durations: Histogram) -> None:
        for index, count in enumerate(durations.counts):
            if count:
                self._counted[bucket_name(measure, index)] += count
        self._counted[sum_name(measure)] += durations.seconds


@asynccontextmanager
async def counting(*, store: Store, clock: Clock, events: EventBus) -> AsyncIterator[None]:
    """Counts while it is open and writes the last counts when it closes."""
    tallies = Tallies(store=store, clock=clock, events=events)
    await tallies.start()
    try:
        yield
    finally:
        await tallies.stop()
