"""Counts what happens in this process, from its events, and adds it to the sums in the database about once a second.

So what `/metrics` shows outlives every process, and any server shows the counts of all. A process that is killed takes
the counts of its last second with it, and so does an answer that got lost: too little is counted then, never too much.
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
        """Whether there was anything to write."""
        counted, self._counted = self._counted, defaultdict(float)
        # A name that nothing was added to needs no write.
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
            # Some events come from other threads.
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
                self._spread(WAITED, waited)
            case events.AttemptsEnded(_, lasted):
                self._spread(LASTED, lasted)
            case events.RunsFinished(succeeded, failed, cancelled):
                counted[SUCCEEDED] += succeeded
                counted[FAILED] += failed
                counted[CANCELLED] += cancelled
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

    def _spread(self, measure: str, spread: Histogram) -> None:
        for index, count in enumerate(spread.counts):
            if count:
                self._counted[bucket_name(measure, index)] += count
        self._counted[sum_name(measure)] += spread.seconds


@asynccontextmanager
async def counting(*, store: Store, clock: Clock, events: EventBus) -> AsyncIterator[None]:
    """Counts while it is open; the last counts are written when it closes."""
    tallies = Tallies(store=store, clock=clock, events=events)
    await tallies.start()
    try:
        yield
    finally:
        await tallies.stop()
