"""A real NATS server with JetStream."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import nats
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from foliot.brokers.levels import safe_name
from tests.support.brokers.server import SECRET, BrokerServer
from tests.support.debian import require

STREAM = "foliot-ready"


class NatsServer(BrokerServer):
    kind = "nats"

    @property
    def url(self) -> str:
        return f"nats://foliot:{SECRET}@127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        return [
            require("nats-server", "nats-server"), "--addr", "127.0.0.1", "--port", str(self.port), "--jetstream",
            "--store_dir", str(self.directory), "--user", "foliot", "--pass", SECRET,
        ]  # fmt: skip

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as found:
                return found.recv(4) == b"INFO"
        except OSError:
            return False

    async def wipe(self) -> None:
        async with self._client() as client:
            try:
                await client.jetstream().purge_stream(STREAM)
            except NotFoundError:
                return

    async def delete(self) -> None:
        async with self._client() as client:
            with suppress(NotFoundError):
                await client.jetstream().delete_stream(STREAM)

    async def count(self, queue: str) -> int:
        async with self._client() as client:
            info = await client.jetstream().stream_info(STREAM, subjects_filter=f"foliot.ready.{safe_name(queue)}.*")
            return sum((info.state.subjects or {}).values())

    async def forge(self, queue: str, messages: list[bytes]) -> None:
        async with self._client() as client:
            for message in messages:
                await client.publish(f"foliot.ready.{safe_name(queue)}.normal", message)
            await client.flush()

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Client]:
        client = await nats.connect(self.url, allow_reconnect=False)
        try:
            yield client
        finally:
            await client.close()
