"""Turns each due tick into exactly one run, or into a note that says why not.

The timing wheel delivers planned firings. One fenced statement per batch carries them out: it moves the cursors,
creates the runs and writes the notes. It moves a cursor only from the position that the node has read, so two nodes
that both believe they own a job can't fire a tick twice. A run's id is derived from job and tick, so a repeated
statement can't either.

The firer prepares a firing shortly before its instant, in a transaction that it commits at the instant on the
database's clock. Nobody sees a run before its instant. An edit in between waits, and so takes effect after the tick. A
tick that is late, or whose job has an open run, is fired after its instant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from uuid import UUID

from foliot.clock import Clock
from foliot.events import EventBus, TicksFired
from foliot.scheduler.loader import MILLISECONDS, Loader
from foliot.scheduler.planner import Planner
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.service import Service
from foliot.store.hints import worker_topic
from foliot.store.store import Store
from foliot.store.ticks import Fired, Firing

# Small enough that the first tick of a burst does not wait for the last.
BATCH = 250
# Concurrent statements: one commits while another computes.
AT_ONCE = 2
LONGEST_WAIT_SECONDS = 0.2
# How long before its instant a firing is prepared. A thousand firings take a tenth of this.
LEAD_SECONDS = 0.3


class Firer(Service):
    def __init__(
        self,
        *,
        store: Store,
        shards: ShardKeeper,
        loader: Loader,
        clock: Clock,
        events: EventBus,
        lead_seconds: float = LEAD_SECONDS,
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._shards = shards
        self._loader = loader
        self._lead = int(lead_seconds * MILLISECONDS)

    async def run_once(self) -> float:
        wheel = self._loader.wheel
        if wheel is None:
            return LONGEST_WAIT_SECONDS / 4
        now = self._loader.database_now()
        found = [firing for _, firing in wheel.advance(now + self._lead)]
        due = [firing for firing in found if firing.job.fire * MILLISECONDS <= now]
        ahead = [list(soon) for _, soon in groupby(found[len(due) :], key=by_instant)]
        try:
            if due:
                await self._fire_all(due)
            while ahead:
                soon = ahead.pop(0)
                await self._fire_ahead(soon, by_instant(soon[0]))
        except BaseException:
            # These have left the wheel but were not fired. The loader reads them again, or they would never fire.
            self._loader.follow([firing for group in ahead for firing in group], frozenset())
            raise
        if found:
            return 0
        following = wheel.next_due()
        if following is None:
            return LONGEST_WAIT_SECONDS
        wait = (following - self._lead - self._loader.database_now()) / MILLISECONDS
        return max(0.001, min(wait, LONGEST_WAIT_SECONDS))

    async def _fire_ahead(self, soon: list[Firing], fire: int) -> None:
        """Fires ticks in transactions that commit at their instant, and the remaining ticks after it."""
        batches, moved, ended = in_batches(soon), set[UUID](), set[UUID]()

        async def fire_some() -> None:
            done = []
            async with self._store.ticks.firing_ahead(
                self._shards.scheduler_id, self._shards.epochs, fire
            ) as fire_ticks:
                for batch in batches:
                    done.append(await fire_ticks(batch))
                    if self._loader.database_now() >= fire * MILLISECONDS:
                        break
            for fired in done:
                moved.update(fired.moved)
                ended.update(fired.ended)
                self._report(fired)

        results = await asyncio.gather(
            *(fire_some() for _ in range(min(AT_ONCE, -(-len(soon) // BATCH)))), return_exceptions=True
        )
        self._loader.follow([firing for firing in soon if firing.job.id in moved], moved - ended)
        if left := [firing for firing in soon if firing.job.id not in moved]:
            await self._fire_all(left)
        raise_first(results)

    async def _fire_all(self, due: list[Firing]) -> None:
        batches, moved, ended = in_batches(due), set[UUID](), set[UUID]()

        async def fire_some() -> None:
            for batch in batches:
                fired = await self._fire(batch)
                moved.update(fired.moved)
                ended.update(fired.ended)

        results = await asyncio.gather(*(fire_some() for _ in range(AT_ONCE)), return_exceptions=True)
        # Only after all are sent, because planning takes time. The loader reads failed firings again.
        self._loader.follow(due, moved - ended)
        raise_first(results)

    async def _fire(self, firings: list[Firing]) -> Fired:
        now = self._loader.database_now() // MILLISECONDS
        planner = Planner(now)
        # A firing that has become late, for example after the machine slept, is planned again.
        current = [planner.firing_of(f.job) if now - f.job.fire >= f.job.schedule.grace_seconds else f for f in firings]
        fired = await self._store.ticks.fire_ticks(self._shards.scheduler_id, self._shards.epochs, current)
        self._report(fired)
        if fired.is_making_room:
            await self._store.cancellation.end_cancelled()
        # Cursors of firings that were planned again are not where `firings` says: the loader reads them again.
        return fired if current == firings else replace(fired, moved=frozenset())

    def _report(self, fired: Fired) -> None:
        self._store.hints.send([*fired.queues, *map(worker_topic, fired.workers)])
        self.events.emit(TicksFired(fired.fired, len(fired.moved) - fired.fired))


def in_batches(firings: list[Firing]) -> Iterator[list[Firing]]:
    """Batches in order of instant, each sorted by shard, because jobs of a shard share pages."""
    return iter([sorted(firings[start : start + BATCH], key=by_shard) for start in range(0, len(firings), BATCH)])


def raise_first(results: Sequence[BaseException | None]) -> None:
    for error in results:
        if error is not None:
            raise error


def by_instant(firing: Firing) -> int:
    return firing.job.fire


def by_shard(firing: Firing) -> int:
    return firing.job.shard
