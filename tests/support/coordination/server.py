"""A real etcd or ZooKeeper."""

from __future__ import annotations

import secrets
import shutil
from abc import abstractmethod
from typing import Any

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.coordination.base import Coordinator
from foliot.coordination.choice import coordinator_of
from tests.support.real_server import RealServer


class CoordinatorServer(RealServer):
    scheme: str
    session_seconds = 2.0

    def config(self, **settings: Any) -> Config:
        return Config(**self.settings() | settings)

    def settings(self) -> dict[str, Any]:
        """A prefix of its own for each test."""
        return {
            "coordination": self.kind,
            "coordination_url": self.url,
            "coordination_prefix": f"t{secrets.token_hex(4)}",
            "coordination_session_seconds": self.session_seconds,
        }

    def coordinator(self, **settings: Any) -> Coordinator:
        return coordinator_of(self.config(**settings), clock=SystemClock())

    def start(self) -> None:
        is_new = not (self.directory / "data").exists()
        super().start()
        if is_new:
            self.prepare()

    def prepare(self) -> None:
        """Creates the user of an empty server."""

    def wipe(self) -> None:
        """Starts again without any data."""
        self.kill()
        shutil.rmtree(self.directory / "data")
        self.start()

    @abstractmethod
    async def forge(self, prefix: str, name: str) -> None:
        """Adds a member that Foliot has not written."""

    @abstractmethod
    async def remove_worker(self, prefix: str, name: str) -> None:
        """Removes the entry of a worker that is alive."""

    @abstractmethod
    async def shards(self, prefix: str) -> list[str]:
        """The shards that each node publishes."""
