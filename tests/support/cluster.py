"""A server, a scheduler node and a worker as processes on one database, shared by many tests."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack

from tests.support.processes import FoliotProcess
from tests.support.server import PostgresServer

HOOK_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
"""Sources may name it as env:HOOK_SECRET, and a broker that does not answer as env:ABSENT_BROKER."""


class Cluster:
    """Runs on its own thread and event loop, because each test has a new loop."""

    def __init__(self, postgres: PostgresServer) -> None:
        self._postgres = postgres
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="cluster")
        self._is_up = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self.url = ""

    def start(self) -> None:
        self._thread.start()
        self._is_up.wait()
        assert self.url, "the cluster did not start"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            database = await self._postgres.clone()
            async with AsyncExitStack() as stack:
                environment = {
                    "FOLIOT_DATABASE_URL": self._postgres.url_of(database), "FOLIOT_PORT": "0",
                    "FOLIOT_SECRET_REFERENCES": "env:HOOK_SECRET,env:ABSENT_BROKER",
                    "HOOK_SECRET": HOOK_SECRET, "ABSENT_BROKER": "redis://127.0.0.1:9/0",
                }  # fmt: skip
                parts = {
                    part: await stack.enter_async_context(FoliotProcess(*command, environment=environment))
                    for part, *command in (
                        ("server", "server", "--open"),
                        ("scheduler", "scheduler"),
                        ("worker", "worker"),
                    )
                }
                started = {part: await process.event("ProcessStarted", part=part) for part, process in parts.items()}
                self.url = started["server"]["address"]
                self._is_up.set()
                await self._stop.wait()
            await self._postgres.drop(database)
        finally:
            self._is_up.set()
