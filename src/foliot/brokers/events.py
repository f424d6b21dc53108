"""Events of brokers."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.events import Event


@dataclass(frozen=True, slots=True)
class BrokerLost(Event):
    """The message broker does not answer, or refuses this process. Work continues from PostgreSQL."""

    broker: str
    why: str


@dataclass(frozen=True, slots=True)
class BrokerReturned(Event):
    """The message broker answers again."""

    broker: str


@dataclass(frozen=True, slots=True)
class HintsPublished(Event):
    """Ids of ready runs were sent to the message broker."""

    count: int


@dataclass(frozen=True, slots=True)
class MessagesTaken(Event):
    """Messages of a source have become jobs, or not."""

    source: str
    submitted: int
    repeated: int
    ignored: int
    dead: int


@dataclass(frozen=True, slots=True)
class SourceFailed(Event):
    """The broker of a source does not answer, or refuses this process. Its messages wait."""

    source: str
    why: str


@dataclass(frozen=True, slots=True)
class SourceReturned(Event):
    """The broker of a source answers again."""

    source: str
