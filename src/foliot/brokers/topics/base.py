"""The interface of topics: named places of a broker that keep messages in order.

Unlike hints, these messages matter. `Sender.send` returns once the broker has confirmed all of them. If it raises, some
may have arrived, and the caller sends all of them again. A `Receiver` gets a message until it has acknowledged it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

CONNECT_SECONDS = 3.0
SEND_SECONDS = 10.0
"""A broker that has not confirmed a batch within this time is gone, until it answers again."""


class TopicUnavailable(Exception):
    """The broker does not answer, or does not take messages at the moment."""


@dataclass(frozen=True, slots=True)
class Message:
    topic: str
    id: str
    """The same if the message is sent again."""
    group: str
    """Messages of the same group stay in order."""
    kind: str
    """For brokers that route messages by a key."""
    body: bytes


class Sender(ABC):
    """Connects by itself when it is first used, and again after its connection broke."""

    name: str

    @abstractmethod
    async def check(self, topics: Sequence[str]) -> None:
        """Raises `ConfigurationError` if the broker refuses this client, or has no such topic. Raises
        `TopicUnavailable` if it does not answer."""

    @abstractmethod
    async def send(self, messages: Sequence[Message]) -> None:
        """Sends messages in order. Raises `TopicUnavailable` or `ConfigurationError`, soon."""

    @abstractmethod
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Received:
    """A message that the broker delivers again, with the same id, until it is acknowledged."""

    id: str | None
    body: bytes
    headers: Mapping[str, str]
    receipt: Any
    """With which the broker knows it."""
    place: tuple[str, int] | None = None
    """For a broker that keeps messages whether they were received or not: the partition, and where the next message of
    it begins."""


class Receiver(ABC):
    """Receives the messages of one topic. One process at a time does, under a name that all of them share."""

    name: str

    places: Mapping[str, int] = MappingProxyType({})
    """Where each partition continues, for a broker that does not remember it. Set before the first `receive`."""

    @abstractmethod
    async def receive(self, limit: int, wait_seconds: float) -> list[Received]:
        """Waits for the first message only. Messages that were never acknowledged come again once the connection has
        broken. Raises `TopicUnavailable`, or `ConfigurationError` if the broker refuses this client or has no such
        topic."""

    @abstractmethod
    async def acknowledge(self, messages: Sequence[Received]) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...
