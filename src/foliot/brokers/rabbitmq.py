"""RabbitMQ: four queues for each queue of Foliot, one for each level of priority.

Hints are transient messages in queues with a length limit: a full queue refuses more, and hints die after a minute. A
worker consumes the four queues with a small prefetch, and acknowledges a hint when it asks for it, so that a busy
worker keeps few hints to itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any
from uuid import UUID

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage, AbstractQueue
from aio_pika.exceptions import AMQPError, AuthenticationError, ProbableAuthenticationError
from aiormq.exceptions import ConnectionNotAllowed

from foliot.brokers.base import ANSWER_SECONDS, HINTS_MAX, KEPT_SECONDS, Broker, BrokerUnavailable, ids_of
from foliot.brokers.levels import Buffer, by_level
from foliot.errors import ConfigurationError
from foliot.model.priority import LEVELS
from foliot.model.run import StartableRun

PREFETCH = 20
CONNECT_SECONDS = 3.0
"""Longer than an answer takes: connecting needs seven of them."""
REFUSALS = (AuthenticationError, ProbableAuthenticationError, ConnectionNotAllowed)
ARGUMENTS: dict[str, str | int] = {
    "x-max-length": HINTS_MAX,
    "x-overflow": "reject-publish",
    "x-message-ttl": KEPT_SECONDS * 1000,
    # Queues of workers that are gone for good disappear.
    "x-expires": 3_600_000,
}


class RabbitmqBroker(Broker):
    name = "rabbitmq"

    def __init__(self, url: str, *, prefix: str) -> None:
        self._url = url
        self._prefix = prefix
        self._connection: AbstractConnection | None = None
        self._connecting = asyncio.Lock()
        self._publisher: AbstractChannel | None = None
        self._declared: dict[str, AbstractQueue] = {}
        self._consumers: dict[str, Consumer] = {}

    async def connect(self) -> None:
        async with self._answering():
            await self._connected()

    async def publish(self, queue: str, runs: Sequence[StartableRun]) -> None:
        async with self._answering(), asyncio.timeout(CONNECT_SECONDS):
            connection = await self._connected()
            if self._publisher is None:
                self._publisher = await connection.channel(publisher_confirms=False)
            for level, some in by_level(runs).items():
                name = self._name(queue, level)
                if name not in self._declared:
                    self._declared[name] = await self._publisher.declare_queue(name, arguments={**ARGUMENTS})
                for run in some:
                    message = aio_pika.Message(str(run.id).encode())
                    await self._publisher.default_exchange.publish(message, name, mandatory=False)
                # The answer comes after the messages: it proves that they have arrived.
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._declared[name].declare()

    async def receive(self, queue: str, limit: int, wait_seconds: float) -> list[UUID]:
        async with self._answering(), asyncio.timeout(CONNECT_SECONDS):
            connection = await self._connected()
            consumer = self._consumers.get(queue)
            if consumer is None:
                consumer = Consumer()
                await consumer.start(connection, [self._name(queue, level) for level in LEVELS])
                self._consumers[queue] = consumer
            return await consumer.receive(limit, wait_seconds)

    async def close(self) -> None:
        await self._disconnect()

    async def _connected(self) -> AbstractConnection:
        async with self._connecting:
            if self._connection is None or self._connection.is_closed:
                await self._disconnect()
                self._connection = await aio_pika.connect(self._url, timeout=CONNECT_SECONDS)
            return self._connection

    async def _disconnect(self) -> None:
        connection, self._connection, self._publisher = self._connection, None, None
        self._declared.clear()
        self._consumers.clear()
        if connection is not None:
            with suppress(Exception):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await connection.close()

    def _name(self, queue: str, level: str) -> str:
        return f"{self._prefix}.ready.{queue}.{level}"

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        try:
            yield
        except REFUSALS:
            raise ConfigurationError(
                "dispatch_url: RabbitMQ refuses the user, the password or the virtual host; check all three"
            ) from None
        except (AMQPError, OSError, TimeoutError, asyncio.CancelledError, RuntimeError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            # A broken channel leaves everything on the connection in doubt.
            await self._disconnect()
            raise BrokerUnavailable(f"RabbitMQ: {type(error).__name__}: {error}") from error


class Consumer:
    """Consumes the four queues of one queue."""

    def __init__(self) -> None:
        self._buffer = Buffer()
        self._arrived = asyncio.Event()
        self._unacknowledged: dict[UUID, AbstractIncomingMessage] = {}
        self._tags: list[str] = []
        self._channel: AbstractChannel
        self._probed: AbstractQueue

    async def start(self, connection: AbstractConnection, names: Sequence[str]) -> None:
        self._channel = channel = await connection.channel(publisher_confirms=False)
        await channel.set_qos(prefetch_count=PREFETCH)
        for level, name in zip(LEVELS, names, strict=True):
            self._probed = await channel.declare_queue(name, arguments={**ARGUMENTS})
            self._tags.append(await self._probed.consume(partial(self._on_message, level)))

    async def receive(self, limit: int, wait_seconds: float) -> list[UUID]:
        if not self._buffer:
            self._arrived.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_seconds):
                    await self._arrived.wait()
            if not self._buffer:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._probe()
        taken = self._buffer.take(limit)
        for run_id in taken:
            await self._unacknowledged.pop(run_id).ack()
        return taken

    async def _probe(self) -> None:
        """A frozen server is as silent as an empty queue, and so is a queue that somebody has deleted."""
        await self._probed.declare()
        # Its type promises less than the channel has.
        channel: Any = await self._channel.get_underlay_channel()
        if not all(tag in channel.consumers for tag in self._tags):
            raise AMQPError("a queue was deleted")

    async def _on_message(self, level: str, message: AbstractIncomingMessage) -> None:
        ids = ids_of([message.body])
        if not ids or ids[0] in self._unacknowledged:
            await message.ack()
            return
        self._unacknowledged[ids[0]] = message
        self._buffer.add(level, ids)
        self._arrived.set()
