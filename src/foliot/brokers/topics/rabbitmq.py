"""RabbitMQ: events go to an exchange, to which queues are bound by the kinds of messages that they want. Messages come
from a queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import aio_pika
from aio_pika.abc import (
    AbstractChannel,
    AbstractConnection,
    AbstractExchange,
    AbstractIncomingMessage,
    AbstractQueue,
)
from aio_pika.exceptions import AMQPError, AuthenticationError, ChannelPreconditionFailed, ProbableAuthenticationError
from aiormq.exceptions import ChannelAccessRefused, ChannelNotFoundEntity, ConnectionNotAllowed, DeliveryError

from foliot.brokers.topics.base import (
    CONNECT_SECONDS,
    SEND_SECONDS,
    Message,
    Received,
    Receiver,
    Sender,
    TopicUnavailable,
)
from foliot.errors import ConfigurationError

REFUSALS = (AuthenticationError, ProbableAuthenticationError, ConnectionNotAllowed)


class RabbitmqSender(Sender):
    name = "rabbitmq"

    def __init__(self, setting: str, url: str) -> None:
        self._setting = setting
        self._url = url
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel
        self._exchanges: dict[str, AbstractExchange] = {}

    async def check(self, topics: Sequence[str]) -> None:
        async with answering(self._setting, self.close):
            for topic in topics:
                await self._exchange(topic)

    async def send(self, messages: Sequence[Message]) -> None:
        async with answering(self._setting, self.close):
            for topic in {message.topic for message in messages}:
                await self._exchange(topic)
            # Published in order, on one channel. RabbitMQ confirms them while the next ones are on their way.
            await asyncio.gather(*(self._publish(message) for message in messages))

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        self._exchanges.clear()
        if connection is not None:
            with suppress(Exception):
                async with asyncio.timeout(CONNECT_SECONDS):
                    await connection.close()

    async def _publish(self, message: Message) -> None:
        body = aio_pika.Message(
            message.body,
            content_type="application/cloudevents+json",
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            message_id=message.id,
        )
        # An exchange without a queue for this kind drops the message: nobody wants it.
        await self._exchanges[message.topic].publish(body, message.kind, mandatory=False)

    async def _exchange(self, topic: str) -> AbstractExchange:
        if self._connection is None or self._connection.is_closed:
            await self.close()
            self._connection = await aio_pika.connect(self._url, timeout=CONNECT_SECONDS)
            self._channel = await self._connection.channel(publisher_confirms=True)
        if topic not in self._exchanges:
            self._exchanges[topic] = await self._channel.declare_exchange(
                topic, aio_pika.ExchangeType.TOPIC, durable=True
            )
        return self._exchanges[topic]


class RabbitmqReceiver(Receiver):
    """Consumes one queue. Messages without a `message_id` have no id here."""

    name = "rabbitmq"

    def __init__(self, url: str, *, topic: str, group: str) -> None:
        self._url = url
        self._topic = topic
        self._connection: AbstractConnection | None = None
        self._channel: AbstractChannel
        self._queue: AbstractQueue
        self._arrived: asyncio.Queue[AbstractIncomingMessage]

    async def receive(self, limit: int, wait_seconds: float) -> list[Received]:
        async with answering("url", self.close):
            await self._consume(limit)
            found: list[AbstractIncomingMessage] = []
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_seconds):
                    found.append(await self._arrived.get())
            while len(found) < limit and not self._arrived.empty():
                found.append(self._arrived.get_nowait())
            if not found:
                # A frozen server is as silent as an empty queue.
                await self._queue.declare()
            return [_received(message) for message in found]

    async def acknowledge(self, messages: Sequence[Received]) -> None:
        async with answering("url", self.close):
            for message in messages:
                await message.receipt.ack()

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                async with asyncio.timeout(CONNECT_SECONDS):
                    await connection.close()

    async def _consume(self, limit: int) -> None:
        if self._connection is not None and not self._connection.is_closed:
            return
        await self.close()
        self._connection = await aio_pika.connect(self._url, timeout=CONNECT_SECONDS)
        self._channel = await self._connection.channel(publisher_confirms=False)
        await self._channel.set_qos(prefetch_count=limit)
        try:
            self._queue = await self._channel.declare_queue(self._topic, passive=True)
        except ChannelNotFoundEntity:
            raise ConfigurationError(
                f"topic: RabbitMQ has no queue {self._topic!r} in this virtual host; create it first"
            ) from None
        self._arrived = asyncio.Queue()
        await self._queue.consume(self._arrived.put)


def _received(message: AbstractIncomingMessage) -> Received:
    headers = {name: str(value) for name, value in message.headers.items()}
    return Received(message.message_id, message.body, headers, message)


@asynccontextmanager
async def answering(where: str, close: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """`where` names the URL in errors. `close` ends the connection, because a broken channel leaves everything on it in
    doubt."""
    try:
        async with asyncio.timeout(SEND_SECONDS):
            yield
    except REFUSALS:
        await close()
        raise ConfigurationError(
            f"{where}: RabbitMQ refuses the user, the password or the virtual host; check all three"
        ) from None
    except (ChannelPreconditionFailed, ChannelAccessRefused) as error:
        await close()
        raise ConfigurationError(
            f"{where}: RabbitMQ refuses the topic: {error}; choose another one, or allow it for this user"
        ) from None
    except (AMQPError, DeliveryError, OSError, TimeoutError, asyncio.CancelledError, RuntimeError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        await close()
        raise TopicUnavailable(f"RabbitMQ: {type(error).__name__}: {error}") from None
