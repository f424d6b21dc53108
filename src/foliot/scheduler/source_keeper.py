"""Receives the messages of sources: holds sources by leases, and runs a consumer for each of them.

For a moment two nodes may believe to hold a source. Then both receive its messages, and each message still becomes one
job, because its key is stored with the job.
"""

from __future__ import annotations

from contextlib import suppress

from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import StoreUnavailable
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.scheduler.source_consumer import SourceConsumer
from foliot.service import Service
from foliot.store.hints import SOURCES_TOPIC
from foliot.store.store import Store
from foliot.submission.admission import Admission
from foliot.submission.intake import Intake

LOOK_SECONDS = 5.0
LEASE_SECONDS = 20.0
HELD_MAX = 100


class SourceKeeper(Service):
    def __init__(self, *, store: Store, config: Config, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._config = config
        self._intake = Intake(store=store, admission=Admission(store=store, clock=clock))
        self._owner = new_id()
        self._consumers: dict[tuple[str, int], SourceConsumer] = {}
        """By the name and the version of the source."""

    def hinted(self, topic: str) -> None:
        if topic == SOURCES_TOPIC:
            self.wake()

    async def run_once(self) -> float:
        held = await self._store.sources.hold_sources(self._owner, LEASE_SECONDS, HELD_MAX)
        wanted = {(stored.name, stored.version): stored for stored in held}
        for place in self._consumers.keys() - wanted.keys():
            await self._consumers.pop(place).stop()
        for place in wanted.keys() - self._consumers.keys():
            consumer = SourceConsumer(
                wanted[place],
                store=self._store,
                intake=self._intake,
                config=self._config,
                clock=self.clock,
                events=self.events,
            )
            await consumer.start()
            self._consumers[place] = consumer
        return LOOK_SECONDS

    async def on_stop(self) -> None:
        for consumer in self._consumers.values():
            consumer.stop_soon()
        for consumer in self._consumers.values():
            await consumer.stop()
        if self._consumers:
            self._consumers.clear()
            # The next node need not wait for the leases.
            with suppress(StoreUnavailable):
                await self._store.sources.release_sources(self._owner)
