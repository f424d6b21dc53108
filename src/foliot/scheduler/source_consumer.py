"""Receives the messages of one source, has them stored as jobs, and only then acknowledges them."""

from __future__ import annotations

from collections.abc import Sequence

from foliot.brokers.events import SourceFailed, SourceReturned
from foliot.brokers.topics.base import Received, Receiver, TopicUnavailable
from foliot.brokers.topics.choice import receiver_of
from foliot.clock import Clock
from foliot.config import Config
from foliot.config.references import secret_of
from foliot.errors import Busy, ConfigurationError, StoreUnavailable
from foliot.events import EventBus
from foliot.model.source import IncomingMessage, StoredSource
from foliot.service import Service
from foliot.store.store import Store
from foliot.submission.intake import Intake

BATCH = 100
WAIT_SECONDS = 1.0
RETRY_SECONDS = 2.0
NOTE_SECONDS = 10.0
"""How often a source shows that messages arrive."""


class SourceConsumer(Service):
    def __init__(
        self, stored: StoredSource, *, store: Store, intake: Intake, config: Config, clock: Clock, events: EventBus
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._stored = stored
        self._store = store
        self._intake = intake
        self._config = config
        self._receiver: Receiver | None = None
        self._waiting: Sequence[Received] = ()
        """Received, and not stored yet."""
        self._is_failing = stored.error is not None
        self._noted_at: float | None = None

    @property
    def name(self) -> str:
        return f"source {self._stored.name}"

    async def run_once(self) -> float:
        try:
            receiver = self._receiver = self._receiver or await self._open()
            self._waiting = self._waiting or await receiver.receive(BATCH, WAIT_SECONDS)
            if self._is_failing:
                await self._recover()
            if not self._waiting:
                return 0.0
            messages = [IncomingMessage(one.id, one.body, one.headers) for one in self._waiting]
            # They come in the order of their places.
            places = dict(one.place for one in self._waiting if one.place is not None)
            await self._intake.take(self._stored, messages, places)
            await receiver.acknowledge(self._waiting)
            self._waiting = ()
        except (TopicUnavailable, ConfigurationError) as error:
            await self._fail(str(error))
            return RETRY_SECONDS
        except Busy:
            # The queue is full. The messages wait here, and others at the broker.
            return RETRY_SECONDS
        except StoreUnavailable:
            await self._close()
            raise
        await self._note_arrival()
        return 0.0

    async def on_stop(self) -> None:
        await self._close()

    async def _open(self) -> Receiver:
        source = self._stored.source
        url = secret_of(self._config, "url", source.url or "")
        receiver = receiver_of(source.kind, url, topic=source.topic or "", group=f"foliot-{self._stored.name}")
        receiver.places = await self._store.sources.list_places(self._stored.name)
        return receiver

    async def _fail(self, why: str) -> None:
        await self._close()
        if not self._is_failing:
            self.events.emit(SourceFailed(self._stored.name, why))
        self._is_failing = True
        await self._store.sources.note_source(self._stored.name, error=why[:500])

    async def _recover(self) -> None:
        await self._store.sources.note_source(self._stored.name)
        self._is_failing = False
        self.events.emit(SourceReturned(self._stored.name))

    async def _note_arrival(self) -> None:
        now = self.clock.monotonic()
        if self._noted_at is None or now - self._noted_at >= NOTE_SECONDS:
            self._noted_at = now
            await self._store.sources.note_source(self._stored.name, is_received=True)

    async def _close(self) -> None:
        """The broker delivers unacknowledged messages again."""
        self._waiting = ()
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            await receiver.close()
