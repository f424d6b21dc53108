"""Sends events of runs and ticks to a message broker.

History is the buffer: while the broker is away, the place in it stays, and nothing is kept in memory. Nothing is
dropped, so each event arrives at least once as long as history is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from foliot.brokers.topics.base import Sender, TopicUnavailable
from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.exporters.cloud_events import messages_of
from foliot.exporters.exporter import HOLD_SECONDS, Exporter
from foliot.store.exports import Happening, Place
from foliot.store.store import Store

BATCH = 500
FIRST_WINDOW = timedelta(seconds=10)
LEAST_WINDOW = timedelta(milliseconds=10)
MOST_WINDOW = timedelta(days=1)


class EventExporter(Exporter[Happening]):
    export_name = "events"

    def __init__(self, *, store: Store, sender: Sender, config: Config, clock: Clock, events: EventBus) -> None:
        super().__init__(store=store, clock=clock, events=events)
        self._sender = sender
        self._topic = config.events_topic
        self._dead_letter_topic = config.events_dead_letter_topic
        self._window = FIRST_WINDOW

    async def on_start(self) -> None:
        """Raises `ConfigurationError` if the broker refuses this process. If it does not answer, events wait."""
        with suppress(TopicUnavailable):
            await self._sender.check([topic for topic in (self._topic, self._dead_letter_topic) if topic])

    async def horizon(self) -> datetime:
        return await self._store.exports.happening_horizon(HOLD_SECONDS)

    def window(self, place: Place, horizon: datetime) -> datetime:
        # A look sorts what it reads, so a large backlog is read in pieces of time.
        return min(horizon, place[0] + self._window)

    def batch_size(self) -> int:
        return BATCH

    async def list_endings(self, after: Place, until: datetime, limit: int) -> Sequence[Happening]:
        found = await self._store.exports.list_happenings(after, until, limit)
        if len(found) == limit:
            self._window = max(LEAST_WINDOW, self._window / 2)
        else:
            self._window = min(MOST_WINDOW, self._window * 2)
        return found

    async def export(self, endings: Sequence[Happening]) -> None:
        if not endings:
            return
        messages = [message for one in endings for message in messages_of(one, self._topic, self._dead_letter_topic)]
        await self._sender.send(messages)

    async def on_stop(self) -> None:
        await super().on_stop()
        await self._sender.close()
