"""The interface of brokers, which carry hints: each is the id of a run that was ready a moment ago.

A hint is never the truth. A worker that receives one claims the run in PostgreSQL, under every rule that holds for
other claims, so hints that are lost, doubled, reordered, stale or forged change nothing but a little time. No broker
therefore needs persistence, acknowledgements or transactions, and each adapter uses the fastest way that its broker
has. A broker holds at most `HINTS_MAX` hints of a queue, or those of `KEPT_SECONDS` where it can't count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from uuid import UUID

from foliot.model.run import StartableRun

HINTS_MAX = 1000
"""The most hints of one queue that a broker holds."""
KEPT_SECONDS = 60
"""After this time a broker forgets a hint."""
ANSWER_SECONDS = 1.0
"""A broker that does not answer within this time is gone, until it answers again."""


class BrokerUnavailable(Exception):
    """The broker does not answer. Work continues from PostgreSQL."""


class Broker(ABC):
    """Connects by itself when it is first used, and again after its connection broke. Each method raises
    `BrokerUnavailable` soon if the broker does not answer."""

    name: str

    @abstractmethod
    async def connect(self) -> None:
        """Raises `ConfigurationError` if the broker refuses this client, whose settings must change then."""

    @abstractmethod
    async def publish(self, queue: str, runs: Sequence[StartableRun]) -> None:
        """Adds a hint for each run. A hint that the broker has already is not added again, where it can tell."""

    @abstractmethod
    async def receive(self, queue: str, limit: int, wait_seconds: float) -> list[UUID]:
        """Takes up to `limit` hints of a queue, the most urgent first. Waits for the first one only, and at most
        `wait_seconds`, which are fewer than `ANSWER_SECONDS`."""

    @abstractmethod
    async def close(self) -> None: ...


def ids_of(texts: Iterable[bytes | str]) -> list[UUID]:
    """The ids in messages. Anything else is somebody else's and is dropped."""
    found = []
    for text in texts:
        try:
            found.append(UUID(text.decode() if isinstance(text, bytes) else text))
        except ValueError:
            continue
    return found
