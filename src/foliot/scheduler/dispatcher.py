"""Publishes the ids of ready runs to a broker, for workers to claim.

Runs are read from PostgreSQL after they were committed, so nothing is announced that does not exist, whoever stored it:
the API, a tick, a retry or a user's own SQL. A hint of PostgreSQL starts a turn at once, and a sweep once a second
finds the rest. A run that nobody claims is announced again, so a broker may lose anything.

Each queue belongs to a shard, and the owner of the shard announces its runs. For a moment two nodes may believe to own
a shard; then a run is announced twice, which does no harm. No more than `HINTS_MAX` runs of a queue are announced at a
time.
"""

from __future__ import annotations

from foliot.brokers.base import HINTS_MAX, Broker, BrokerUnavailable
from foliot.brokers.events import BrokerLost, BrokerReturned, HintsPublished
from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import ConfigurationError
from foliot.events import EventBus
from foliot.model.ids import shard_of_queue
from foliot.scheduler.published_hints import PublishedHints
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.service import Service
from foliot.store.hints import ALL_QUEUES_TOPIC, BROKERLESS_TOPIC
from foliot.store.store import Store

QUEUES_MAX = 1000
GATHER_SECONDS = 0.002
"""The shortest time between two turns: hints that arrive meanwhile share one."""
REFILL_SECONDS = 0.02
"""The time between two turns while a queue has more ready runs than are announced at a time."""
RETRY_SECONDS = 1.0


class Dispatcher(Service):
    def __init__(
        self, *, store: Store, shards: ShardKeeper, broker: Broker, config: Config, clock: Clock, events: EventBus
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._shards = shards
        self._broker = broker
        self._sweep_seconds = min(config.poll_seconds, 1.0)
        self._published = PublishedHints()
        self._hinted: set[str] = set()
        self._sweep_at = 0.0
        self._retry_at = 0.0
        self._is_lost = False

    def hinted(self, topic: str) -> None:
        """Wakes for queues with ready runs."""
        if topic == ALL_QUEUES_TOPIC:
            self._sweep_at = 0.0
            self.wake()
        elif not topic.startswith("/"):
            self._hinted.add(topic)
            self.wake()

    async def run_once(self) -> float:
        queues, self._hinted = self._hinted, set()
        if self.clock.monotonic() >= self._sweep_at:
            self._sweep_at = self.clock.monotonic() + self._sweep_seconds
            queues.update(await self._store.due_runs.ready_queues(QUEUES_MAX))
        own = [queue for queue in sorted(queues) if shard_of_queue(queue) in self._shards.epochs]
        is_behind = await self._announce(own) if own else False
        await self.clock.wait(self._stopping, REFILL_SECONDS if is_behind else GATHER_SECONDS)
        if is_behind:
            self._hinted.update(own)
            return 0
        return max(0.0, self._sweep_at - self.clock.monotonic())

    async def _announce(self, queues: list[str]) -> bool:
        """Returns whether a queue may have more ready runs than are announced now."""
        found = await self._store.claims.list_startable(queues, HINTS_MAX)
        if not any(found.values()):
            return False
        if self.clock.monotonic() < self._retry_at:
            self._store.hints.send([BROKERLESS_TOPIC])
            return False
        try:
            for queue, runs in found.items():
                if due := self._published.due(queue, runs, self.clock.monotonic()):
                    await self._broker.publish(queue, due)
                    self.events.emit(HintsPublished(len(due)))
        except (BrokerUnavailable, ConfigurationError) as error:
            self._lose(error)
            return False
        if self._is_lost:
            self._is_lost = False
            self.events.emit(BrokerReturned(self._broker.name))
        return any(len(runs) == HINTS_MAX for runs in found.values())

    def _lose(self, error: Exception) -> None:
        """Workers notice by themselves that the broker is gone, except for those that still reach it."""
        self._retry_at = self.clock.monotonic() + RETRY_SECONDS
        self._published.forget()
        self._store.hints.send([BROKERLESS_TOPIC])
        if not self._is_lost:
            self._is_lost = True
            self.events.emit(BrokerLost(self._broker.name, str(error)))
