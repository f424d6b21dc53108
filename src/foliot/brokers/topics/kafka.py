"""Kafka topics. The messages of a run have the same key, and so the same partition, which keeps their order.

PostgreSQL stores how far a source has read, in the transaction of its jobs. Kafka gets the offsets too, but only to
show them. A topic that was deleted and made again has another id, and is read from its beginning.

The client has threads of its own, and its calls wait. So each call runs in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka import Message as KafkaMessage
from confluent_kafka.admin import AdminClient

from foliot.brokers.own_thread import OwnThread
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

T = TypeVar("T")
PORT = 9092
SILENT = logging.getLogger("foliot.kafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False
# The library documents these names, in spite of their underscore.
REFUSED, ALL_DOWN = KafkaError._AUTHENTICATION, KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
ABSENT = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001
FORBIDDEN = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED)
RECEIVING = {
    "enable.auto.commit": False,
    # The place to continue is decided here: a jump to another place would lose or repeat messages.
    "auto.offset.reset": "error",
    "enable.partition.eof": False,
}
LOOK_EACH = 60
"""The number of batches after which it looks for new partitions."""


class Client:
    """The settings of a connection, and the last error that one of the client's threads has reported."""

    def __init__(self, setting: str, url: str) -> None:
        self._setting = setting
        parts = urlsplit(url)
        is_secure = parts.scheme == "kafkas"
        self.settings: dict[str, Any] = {
            "bootstrap.servers": f"{parts.hostname}:{parts.port or PORT}",
            "security.protocol": ("SASL_" if parts.username else "") + ("SSL" if is_secure else "PLAINTEXT"),
            "client.id": "foliot",
            "socket.timeout.ms": int(SEND_SECONDS * 1000),
            "reconnect.backoff.max.ms": 1000,
            "error_cb": self._failed,
            "logger": SILENT,
        }
        if parts.username:
            self.settings |= {
                "sasl.mechanism": "PLAIN",
                "sasl.username": unquote(parts.username),
                "sasl.password": unquote(parts.password or ""),
            }
        self.error: KafkaError | None = None

    def _failed(self, error: KafkaError) -> None:
        if error.code() in (REFUSED, ALL_DOWN) and (self.error is None or self.error.code() != REFUSED):
            self.error = error

    def refuse(self, error: KafkaError | None = None) -> None:
        """Raises the error of a call, or the one that was reported in between."""
        found = self.error if self.error is not None else error
        if found is None:
            return
        self.error = None
        if found.code() == REFUSED:
            raise ConfigurationError(f"{self._setting}: Kafka refuses the user or the password")
        raise TopicUnavailable(f"Kafka: {found.name()}: {found.str()}")

    async def call(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except KafkaException as error:
            self.refuse(error.args[0])
            raise

    async def check(self, client: Any, topics: Sequence[str], field: str) -> None:
        def list_topics() -> Any:
            try:
                return client.list_topics(timeout=CONNECT_SECONDS)
            except KafkaException:
                # Reports what the connection failed of.
                client.poll(0)
                raise

        known = (await self.call(list_topics)).topics
        for topic in topics:
            if topic not in known:
                raise ConfigurationError(
                    f"{field}: Kafka has no topic {topic!r}; create it: kafka-topics.sh --create --topic {topic}"
                )


class KafkaSender(Sender):
    name = "kafka"

    def __init__(self, setting: str, url: str) -> None:
        self._setting = setting
        self._client = Client(setting, url)
        self._producer: Producer | None = None

    async def check(self, topics: Sequence[str]) -> None:
        await self._client.check(self._connected(), topics, self._setting)

    async def send(self, messages: Sequence[Message]) -> None:
        producer, failed = self._connected(), list[KafkaError]()

        def delivered(error: KafkaError | None, _: KafkaMessage) -> None:
            if error is not None:
                failed.append(error)

        def send() -> int:
            for one in messages:
                producer.produce(one.topic, one.body, one.group, on_delivery=delivered, headers={"id": one.id})
            return producer.flush(SEND_SECONDS)

        left = await self._client.call(send)
        if left or failed:
            await self.close()
            self._client.refuse(failed[0] if failed else None)
            raise TopicUnavailable(f"Kafka has not confirmed {left} messages")

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            # Nothing may arrive later: the caller sends all of it again.
            producer.purge()
            await asyncio.to_thread(producer.flush, 0)

    def _connected(self) -> Producer:
        if self._producer is None:
            own = {"enable.idempotence": True, "message.timeout.ms": int(SEND_SECONDS * 900)}
            self._producer = Producer(self._client.settings | own)
        return self._producer


class KafkaReceiver(Receiver):
    """Reads all partitions of a topic. Its consumer group has no members: it only shows offsets to other tools."""

    name = "kafka"

    def __init__(self, url: str, *, topic: str, group: str) -> None:
        self._client = Client("url", url)
        self._topic = topic
        self._group = group
        self._thread = OwnThread(f"kafka {group}")
        self._reader: Reader | None = None

    async def receive(self, limit: int, wait_seconds: float) -> list[Received]:
        return await self._call(lambda: self._opened().receive(limit, wait_seconds))

    async def acknowledge(self, messages: Sequence[Received]) -> None:
        await self._call(lambda: self._opened().show_offsets(messages))

    async def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            with suppress(TimeoutError, KafkaException):
                async with asyncio.timeout(CONNECT_SECONDS):
                    await self._thread.call(reader.close)
        self._thread.end()

    def _opened(self) -> Reader:
        if self._reader is None:
            self._reader = Reader(self._client, self._topic, self._group, self.places)
        return self._reader

    async def _call(self, work: Callable[[], T]) -> T:
        try:
            return await self._thread.call(work)
        except TimeoutError:
            raise TopicUnavailable("Kafka does not answer") from None
        except KafkaException as error:
            found: KafkaError = error.args[0]
            if found.code() in ABSENT:
                raise ConfigurationError(
                    f"topic: Kafka has no topic {self._topic!r}; create it: "
                    f"kafka-topics.sh --create --topic {self._topic}"
                ) from None
            if found.code() in FORBIDDEN:
                raise ConfigurationError(
                    f"topic: Kafka does not allow this user to read the topic {self._topic!r}; allow Read and Describe "
                    f"for the topic, and Read for the group {self._group!r}"
                ) from None
            self._client.refuse(found)
            raise


class Reader:
    """A topic that is being read. Its methods block."""

    def __init__(self, client: Client, topic: str, group: str, places: Mapping[str, int]) -> None:
        self._topic = topic
        self._places = places
        self._until_look = LOOK_EACH
        self._consumer = Consumer(client.settings | RECEIVING | {"group.id": group})
        try:
            # Tells of a wrong password, for which other calls would wait in vain.
            self._consumer.list_topics(topic, timeout=CONNECT_SECONDS)
            self._admin = AdminClient(client.settings)
            self._topic_id, self._partitions = self._describe()
            beginnings = [self._beginning(partition) for partition in self._partitions]
            self._consumer.assign(beginnings)
            # The node before may have died before it showed them.
            self._show(beginnings)
        except (KafkaException, TimeoutError):
            self._consumer.poll(0)
            self._consumer.close()
            raise

    def receive(self, limit: int, wait_seconds: float) -> list[Received]:
        first = self._consumer.poll(wait_seconds)
        found = [] if first is None else [first, *self._consumer.consume(limit - 1, 0)]
        self._until_look -= 1
        if not found or self._until_look <= 0:
            # A frozen server is as silent as an empty topic.
            self._look()
        for message in found:
            if (error := message.error()) is not None:
                raise KafkaException(error)
        return [self._received(message) for message in found]

    def show_offsets(self, messages: Sequence[Received]) -> None:
        reached = {partition: offset + 1 for partition, offset in (message.receipt for message in messages)}
        self._show([TopicPartition(self._topic, partition, offset) for partition, offset in reached.items()])

    def close(self) -> None:
        self._consumer.close()

    def _show(self, offsets: list[TopicPartition]) -> None:
        # Nothing depends on it, so nothing waits for it.
        with suppress(KafkaException):
            self._consumer.commit(offsets=offsets, asynchronous=True)

    def _look(self) -> None:
        self._until_look = LOOK_EACH
        topic_id, partitions = self._describe()
        if topic_id != self._topic_id:
            raise TopicUnavailable(f"Kafka: somebody has made the topic {self._topic!r} again")
        if new := [partition for partition in partitions if partition not in self._partitions]:
            # The consumer has to learn of them, too.
            self._consumer.list_topics(self._topic, timeout=CONNECT_SECONDS)
            self._consumer.incremental_assign([self._beginning(partition) for partition in new])
            self._partitions = partitions

    def _describe(self) -> tuple[str, list[int]]:
        """The id of the topic, and its partitions."""
        topics = TopicCollection([self._topic])
        asked = self._admin.describe_topics(topics, request_timeout=CONNECT_SECONDS)
        found = asked[self._topic].result(2 * CONNECT_SECONDS)
        return str(found.topic_id), [one.id for one in found.partitions]

    def _beginning(self, partition: int) -> TopicPartition:
        asked = TopicPartition(self._topic, partition)
        if (ends := self._consumer.get_watermark_offsets(asked, timeout=CONNECT_SECONDS)) is None:
            raise TimeoutError
        low, high = ends
        place = self._places.get(self._name_of(partition), low)
        # Messages before the first one have expired. A place beyond the end is one of messages that Kafka has lost.
        return TopicPartition(self._topic, partition, place if low <= place <= high else low)

    def _name_of(self, partition: int) -> str:
        return f"{self._topic_id}/{partition}"

    def _received(self, message: KafkaMessage) -> Received:
        partition, offset = message.partition() or 0, message.offset() or 0
        given: Any = message.headers() or []
        headers = {header: (value or b"").decode(errors="replace") for header, value in given}
        name = self._name_of(partition)
        # The time tells a message from a lost one that had the same offset.
        message_id = f"{name}:{offset}:{message.timestamp()[1]}"
        return Received(message_id, message.value() or b"", headers, (partition, offset), (name, offset + 1))
