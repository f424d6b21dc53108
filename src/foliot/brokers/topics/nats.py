"""NATS: a topic is the beginning of subjects that a JetStream stream keeps. The kind of an event follows. Messages come
from a subject, which may have wildcards."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import AuthorizationError, Error
from nats.errors import TimeoutError as Silence
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

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

ACK_SECONDS = 60.0
PENDING_MAX = 1000
UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
WINDOW = 100
"""The most messages that wait for their confirmation."""


class Connection:
    """A connection that is made when it is first used, and again after it broke."""

    def __init__(self, setting: str, url: str) -> None:
        self._setting = setting
        self._url = url
        self._client: Client | None = None

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                async with asyncio.timeout(CONNECT_SECONDS):
                    await client.close()

    async def connected(self) -> Client:
        if self._client is None or not self._client.is_connected:
            await self.close()
            self._client = client = Client()
            # Otherwise the client tries an absent server sixty times, two seconds apart.
            await client.connect(
                self._url,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=int(CONNECT_SECONDS),
                error_cb=_ignore,
                name="foliot",
            )
        return self._client

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(SEND_SECONDS):
                yield
        except (Error, OSError, TimeoutError) as error:
            await self.close()
            if isinstance(error, AuthorizationError) or "authorization violation" in str(error).lower():
                raise ConfigurationError(f"{self._setting}: NATS refuses the user, password or token") from None
            raise TopicUnavailable(f"NATS: {type(error).__name__}: {error}") from None


class NatsSender(Sender):
    name = "nats"

    def __init__(self, setting: str, url: str) -> None:
        self._setting = setting
        self._connection = Connection(setting, url)

    async def check(self, topics: Sequence[str]) -> None:
        async with self._connection.answering():
            client = await self._connection.connected()
            for topic in topics:
                try:
                    await client.jsm(timeout=CONNECT_SECONDS).find_stream_name_by_subject(f"{topic}.>")
                except NotFoundError:
                    raise ConfigurationError(
                        f"{self._setting}: no JetStream stream of this NATS server keeps the subjects {topic}.>; "
                        f"create one: nats stream add {topic.replace('.', '-')} --subjects '{topic}.>'"
                    ) from None

    async def send(self, messages: Sequence[Message]) -> None:
        async with self._connection.answering():
            client = await self._connection.connected()
            stream = client.jetstream(timeout=SEND_SECONDS)
            for first in range(0, len(messages), WINDOW):
                # Each is written before the next one. JetStream drops what it has already, by the id.
                await asyncio.gather(
                    *(
                        stream.publish(f"{one.topic}.{one.kind}", one.body, headers={"Nats-Msg-Id": one.id})
                        for one in messages[first : first + WINDOW]
                    )
                )

    async def close(self) -> None:
        await self._connection.close()


class NatsReceiver(Receiver):
    """A durable consumer. Its messages come again after `ACK_SECONDS` if nobody acknowledges them."""

    name = "nats"

    def __init__(self, url: str, *, topic: str, group: str) -> None:
        self._connection = Connection("url", url)
        self._topic = topic
        self._group = UNSAFE.sub("-", group)
        self._pull: JetStreamContext.PullSubscription | None = None
        self._client: Client | None = None

    async def receive(self, limit: int, wait_seconds: float) -> list[Received]:
        async with self._connection.answering():
            client = await self._connection.connected()
            if self._pull is None or self._client is not client:
                self._pull, self._client = await self._subscribe(client), client
            try:
                found = await self._pull.fetch(limit, timeout=wait_seconds)
            except (TimeoutError, Silence):
                # A frozen server is as silent as an empty stream.
                await client.flush(timeout=int(CONNECT_SECONDS))
                return []
            return [_received(message) for message in found]

    async def acknowledge(self, messages: Sequence[Received]) -> None:
        async with self._connection.answering():
            for message in messages:
                await message.receipt.ack()

    async def close(self) -> None:
        self._pull = None
        await self._connection.close()

    async def _subscribe(self, client: Client) -> JetStreamContext.PullSubscription:
        jetstream = client.jetstream(timeout=CONNECT_SECONDS)
        try:
            stream = await client.jsm(timeout=CONNECT_SECONDS).find_stream_name_by_subject(self._topic)
        except NotFoundError:
            raise ConfigurationError(
                f"topic: no JetStream stream of this NATS server keeps the subject {self._topic!r}; create one: "
                f"nats stream add ORDERS --subjects '{self._topic}'"
            ) from None
        consumer = ConsumerConfig(
            durable_name=self._group,
            filter_subject=self._topic,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=ACK_SECONDS,
            max_ack_pending=PENDING_MAX,
        )
        await jetstream.add_consumer(stream, consumer)
        return await jetstream.pull_subscribe_bind(self._group, stream)


def _received(message: Msg) -> Received:
    about = message.metadata
    # The time tells a message from one with the same number in a stream that was made again.
    message_id = f"{about.stream}:{about.sequence.stream}:{about.timestamp.timestamp():.6f}"
    return Received(message_id, message.data, dict(message.headers or {}), message)


async def _ignore(_: Exception) -> None:
    """Every call reports its own errors. The client would print them too."""
