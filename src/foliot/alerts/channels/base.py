"""The interface of a channel, and the error that each of them raises."""

from __future__ import annotations

from typing import Protocol

from foliot.alerts.message import AlertMessage


class ChannelError(Exception):
    """A message could not be delivered. The text contains no secret."""

    def __init__(self, message: str, permanent: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.permanent = permanent
        """Whether another try would fail too, until somebody changes the channel."""
        self.retry_after = retry_after
        """Seconds that the other side wants us to wait before the next try."""


class Channel(Protocol):
    async def send(self, message: AlertMessage, delivery_id: str) -> None:
        """Raises `ChannelError`. `delivery_id` is the same at every try of one delivery. It always ends within the
        time limit of the settings."""
        ...
