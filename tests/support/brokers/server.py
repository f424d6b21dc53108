"""A real broker."""

from __future__ import annotations

import os
import subprocess
from abc import abstractmethod
from typing import Any, ClassVar

from foliot.brokers.base import Broker
from foliot.brokers.choice import broker_of
from foliot.config import Config
from tests.support.real_server import SECRET, RealServer

__all__ = ["SECRET", "BrokerServer", "output_of"]


class BrokerServer(RealServer):
    can_be_killed: ClassVar[bool] = True
    keeps_order: ClassVar[bool] = True
    """Whether the hints of a level arrive in the order in which they were published."""
    keeps_levels: ClassVar[bool] = True
    """Whether all hints of a level arrive before those of the next one. Otherwise only those that came together do."""
    names_its_address: ClassVar[bool] = False
    """Whether it tells clients the port at which to reach it: `advertised_port`, for a proxy."""
    keeps_topics: ClassVar[bool] = True
    """Whether its topics and their messages are there again after it was killed."""
    settle_seconds: ClassVar[float] = 0.3
    """After this time it has pushed to a receiver all that it pushes."""

    @abstractmethod
    async def wipe(self) -> None:
        """Removes every message."""

    async def delete(self) -> None:
        """Deletes everything that Foliot has made, under its running processes."""
        await self.wipe()

    @abstractmethod
    async def count(self, queue: str) -> int:
        """The number of hints that the server holds for a queue."""

    @abstractmethod
    async def forge(self, queue: str, messages: list[bytes]) -> None:
        """Adds messages to a queue that Foliot has not written."""

    def broker(self, **settings: Any) -> Broker:
        return broker_of(self.config(**settings))

    def config(self, **settings: Any) -> Config:
        return Config(**{"dispatch": self.kind, "dispatch_url": self.url} | settings)


def output_of(*command: str, environment: dict[str, str] | None = None) -> str:
    """The output of a command, or an empty text if it fails."""
    done = subprocess.run(
        command, env=os.environ | (environment or {}), capture_output=True, text=True, check=False, timeout=30
    )
    return done.stdout if done.returncode == 0 else ""
