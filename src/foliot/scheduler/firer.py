"""Turns due ticks into runs: each exactly once, or into a note that says why not.

What is due comes out of the timing wheel, planned beforehand, and is carried out by one fenced statement a batch: it
moves the cursors, makes the runs, notes the rest. A cursor is moved only from where it was read, so two nodes that both
believe they own a job can't fire a tick twice; a run's id is made of job and tick, so not even a repeated statement
can.

The work is done a moment ahead, in a transaction that is held open until the instant has come on the database's clock;
then a commit is all that is left to do. Nobody sees a run before its instant. An edit that comes in between waits, and
so comes after the tick. What has another run in its way, or is late, is fired when its instant is over.
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
from foliot.store.jobs import Fired, Firing
from foliot.store.store import Store

# Small enough for the first of a burst not to wait for the last.
BATCH = 250
# Statements under way at the same time: one commits while another computes.
AT_ONCE = 2
LONGEST_WAIT_SECONDS = 0.2
# How long before its instant a firing is prepared: a thousand take a tenth of it.
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
            # Out of the wheel, and not got to: read anew, or these jobs would never fire again.
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
        """What is due in a moment is fired by transactions that commit at its instant. What they leave is fired after
        it."""
        batches, moved, ended = in_batches(soon), set[UUID](), set[UUID]()

        async def fire_some() -> None:
            done = []
            async with self._store.jobs.firing_ahead(
                self._shards.scheduler_id, self._shards.epochs, fire
            ) as fire_ticks:
                for batch in batches:
                    done.append(await fire_ticks(batch))
                    if self._loader.database_now() >= fire * MILLISECONDS:
                        break
            for fired in done:
                moved.update(fired.moved)
                ended.update(fired.ended)
                self._tell(fired)

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
        # Not before all have been sent: it is work, and they are in a hurry. What failed, or was not got to, is read
        # anew.
        self._loader.follow(due, moved - ended)
        raise_first(results)

    async def _fire(self, firings: list[Firing]) -> Fired:
        now = self._loader.database_now() // MILLISECONDS
        planner = Planner(now)
        # What was planned to be on time may have become late, as after a sleep: then it is planned again.
        current = [planner.firing_of(f.job) if now - f.job.fire >= f.job.schedule.grace_seconds else f for f in firings]
        fired = await self._store.jobs.fire_ticks(self._shards.scheduler_id, self._shards.epochs, current)
        self._tell(fired)
        if fired.is_making_room:
            await self._store.end_cancelled()
        # What was planned anew went elsewhere than its firing in `firings` says: it is read anew.
        return fired if current == firings else replace(fired, moved=frozenset())

    def _tell(self, fired: Fired) -> None:
        self._store.hints.send([*fired.queues, *map(worker_topic, fired.workers)])
        self.events.emit(TicksFired(fired.fired, len(fired.moved) - fired.fired))


def in_batches(firings: list[Firing]) -> Iterator[list[Firing]]:
    """In order of their instants; inside a batch by shard, whose jobs share pages."""
    return iter([sorted(firings[start : start + BATCH], key=by_shard) for start in range(0, len(firings), BATCH)])


def raise_first(results: Sequence[BaseException | None]) -> None:
    for error in results:
        if error is not None:
            raise error


def by_instant(firing: Firing) -> int:
    return firing.job.fire


def by_shard(firing: Firing) -> int:
    return firing.job.shard
