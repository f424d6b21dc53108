"""Receives hints of a broker for a worker: ids of runs that were ready a moment ago.

Each queue has a receiver of its own, which takes no more hints than the queue has free slots, so that hints stay where
a worker with free slots finds them. While the broker does not answer, the claimer polls PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from foliot.brokers.base import ANSWER_SECONDS, Broker, BrokerUnavailable
from foliot.brokers.events import BrokerLost, BrokerReturned
from foliot.clock import Clock
from foliot.errors import ConfigurationError
from foliot.events import EventBus
from foliot.service import Service

WAIT_SECONDS = ANSWER_SECONDS / 2
"""Longest wait for a hint. It shows how soon a broker that went silent is noticed, too."""
RETRY_SECONDS = 0.5
BATCH = 500


class Inbox:
    """The receivers of all queues of a worker."""

    def __init__(
        self,
        broker: Broker,
        *,
        queues: Mapping[str, int],
        free_slots: Callable[[], Mapping[str, int]],
        on_change: Callable[[], None],
        clock: Clock,
        events: EventBus,
    ) -> None:
        self._broker = broker
        self._on_change = on_change
        self._events = events
        self._is_reachable = True
        self.receivers = {
            queue: Receiver(
                broker,
                queue,
                free_slots=lambda queue=queue: free_slots().get(queue, 0),  # type: ignore[misc]
                on_received=on_change,
                on_answer=self._on_answer,
                clock=clock,
                events=events,
            )
            for queue in queues
        }

    @property
    def is_reachable(self) -> bool:
        """Whether the broker answered last time. Otherwise its hints can't be waited for."""
        return self._is_reachable

    def take(self, slots: Mapping[str, int]) -> dict[str, list[UUID]]:
        """Takes received hints, at most as many of each queue as it has slots."""
        found = {queue: self.receivers[queue].take(number) for queue, number in slots.items()}
        return {queue: ids for queue, ids in found.items() if ids}

    def on_slot_freed(self) -> None:
        for receiver in self.receivers.values():
            receiver.on_slot_freed()

    def _on_answer(self, error: Exception | None) -> None:
        was_reachable, self._is_reachable = self._is_reachable, error is None
        if was_reachable == self._is_reachable:
            return
        self._events.emit(
            BrokerReturned(self._broker.name) if error is None else BrokerLost(self._broker.name, str(error))
        )
        self._on_change()


class Receiver(Service):
    """Receives the hints of one queue."""

    def __init__(
        self,
        broker: Broker,
        queue: str,
        *,
        free_slots: Callable[[], int],
        on_received: Callable[[], None],
        on_answer: Callable[[Exception | None], None],
        clock: Clock,
        events: EventBus,
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._broker = broker
        self._queue = queue
        self._free_slots = free_slots
        self._on_received = on_received
        self._on_answer = on_answer
        self._ids: dict[UUID, None] = {}
        """In the order of their arrival, each once."""
        self._is_full = False

    def take(self, number: int) -> list[UUID]:
        taken = list(self._ids)[:number]
        for run_id in taken:
            del self._ids[run_id]
        if taken:
            self.on_slot_freed()
        return taken

    def on_slot_freed(self) -> None:
        if self._is_full:
            self._is_full = False
            self.wake()

    async def run_once(self) -> float | None:
        wanted = min(self._free_slots() - len(self._ids), BATCH)
        self._is_full = wanted <= 0
        if self._is_full:
            return None
        try:
            received = await self._broker.receive(self._queue, wanted, WAIT_SECONDS)
        except (BrokerUnavailable, ConfigurationError) as error:
            self._on_answer(error)
            return RETRY_SECONDS
        self._on_answer(None)
        if received:
            self._ids.update(dict.fromkeys(received))
            self._on_received()
        return 0
