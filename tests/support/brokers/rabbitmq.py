"""A real RabbitMQ, with a node name, ports and directories of its own."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aio_pika
from aio_pika.abc import AbstractChannel

from tests.support.brokers.server import SECRET, BrokerServer, output_of
from tests.support.debian import require
from tests.support.ports import free_port

LEVELS = ("critical", "high", "normal", "low")


class RabbitmqServer(BrokerServer):
    kind = "rabbitmq"

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._node = f"foliot{self.port}@localhost"
        self._other_ports = free_port(), free_port()

    @property
    def url(self) -> str:
        return f"amqp://foliot:{SECRET}@127.0.0.1:{self.port}/"

    def command(self) -> list[str]:
        require("rabbitmq-server", "rabbitmq-server")
        (self.directory / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\ndefault_user = foliot\ndefault_pass = {SECRET}\n"
            "loopback_users = none\nmanagement.tcp.port = 0\n"
        )
        (self.directory / "enabled_plugins").write_text("[].\n")
        # The script of the Debian package would become another user.
        return ["/usr/lib/rabbitmq/bin/rabbitmq-server"]

    def environment(self) -> dict[str, str]:
        distribution, epmd = map(str, self._other_ports)
        return {
            "HOME": str(self.directory),
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": distribution,
            "ERL_EPMD_PORT": epmd,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_CONFIG_FILE": str(self.directory / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.directory / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.directory / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none",
        }

    def stop(self) -> None:
        super().stop()
        # Erlang's name server outlives the node that started it.
        output_of("epmd", "-kill", environment={"ERL_EPMD_PORT": str(self._other_ports[1])})

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as found:
                found.sendall(b"AMQP\x00\x00\x09\x01")
                return bool(found.recv(8))
        except OSError:
            return False

    async def wipe(self) -> None:
        async with self._channel() as channel:
            for queue in ("default", "gone", "mail"):
                for level in LEVELS:
                    await channel.queue_delete(f"foliot.ready.{queue}.{level}")

    async def count(self, queue: str) -> int:
        total = 0
        for level in LEVELS:
            async with self._channel() as channel:
                try:
                    declared = await channel.declare_queue(f"foliot.ready.{queue}.{level}", passive=True)
                except aio_pika.exceptions.ChannelNotFoundEntity:
                    continue
                total += declared.declaration_result.message_count or 0
        return total

    async def forge(self, queue: str, messages: list[bytes]) -> None:
        async with self._channel() as channel:
            for message in messages:
                await channel.default_exchange.publish(aio_pika.Message(message), f"foliot.ready.{queue}.normal")

    @asynccontextmanager
    async def _channel(self) -> AsyncIterator[AbstractChannel]:
        connection = await aio_pika.connect(self.url, timeout=30)
        async with connection:
            yield await connection.channel()
