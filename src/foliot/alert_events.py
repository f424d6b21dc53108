"""Events of alerts."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.events import Event


@dataclass(frozen=True, slots=True)
class AlertsDecided(Event):
    """Alerts opened, changed or resolved. `dropped`: messages for channels with too many that wait."""

    opened: int
    resolved: int
    messages: int
    dropped: int


@dataclass(frozen=True, slots=True)
class AlertSent(Event):
    """A channel has taken a message."""

    channel: str


@dataclass(frozen=True, slots=True)
class AlertUndeliverable(Event):
    """A channel did not take a message. Unless that is permanent, the message is sent again later."""

    channel: str
    error: str
    is_permanent: bool
