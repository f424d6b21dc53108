"""Reads the topics of real brokers, as the systems behind them would."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

import aio_pika
import msgspec
import nats
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig
from nats.js.errors import NotFoundError
from redis import Redis

from foliot.brokers.topics.kafka import Client
from foliot.brokers.topics.sqs import FIFO, Connection
from tests.support.brokers.server import BrokerServer


class TopicReader(ABC):
    keeps_order: ClassVar[bool] = True
    """Whether messages of different runs arrive in order, too."""

    def __init__(self, server: BrokerServer) -> None:
        self.server = server

    @abstractmethod
    async def open(self, topics: Sequence[str]) -> None:
        """Makes the topics as an administrator would, empty."""

    @abstractmethod
    def topic_to_receive(self, topic: str) -> str:
        """The topic that a source names to get these messages."""

    @abstractmethod
    async def read(self, topic: str) -> list[bytes]:
        """Every message that the topic keeps, in order."""

    @abstractmethod
    async def feed(self, topic: str, messages: Sequence[tuple[str, bytes]]) -> None:
        """Adds messages with ids for Foliot to receive. `open` has made the topic."""

    @abstractmethod
    async def unacknowledged(self, topic: str) -> int:
        """How many messages the broker would deliver (again)."""

    async def events(self, topic: str) -> list[dict[str, Any]]:
        return [msgspec.json.decode(body) for body in await self.read(topic)]


class RedisReader(TopicReader):
    def topic_to_receive(self, topic: str) -> str:
        return topic

    async def open(self, topics: Sequence[str]) -> None:
        with Redis.from_url(self.server.url) as client:
            client.delete(*topics)

    async def read(self, topic: str) -> list[bytes]:
        with Redis.from_url(self.server.url) as client:
            entries: Any = client.xrange(topic)
            return [fields[b"event"] for _, fields in entries]

    async def feed(self, topic: str, messages: Sequence[tuple[str, bytes]]) -> None:
        with Redis.from_url(self.server.url) as client:
            for _, body in messages:
                client.xadd(topic, {"body": body, "origin": "test"})

    async def unacknowledged(self, topic: str) -> int:
        with Redis.from_url(self.server.url) as client:
            groups: Any = client.xinfo_groups(topic)
            return sum(group["pending"] + (group["lag"] or 0) for group in groups)


class NatsReader(TopicReader):
    def topic_to_receive(self, topic: str) -> str:
        return f"{topic}.>"

    async def open(self, topics: Sequence[str]) -> None:
        client = await nats.connect(self.server.url, allow_reconnect=False)
        for topic in topics:
            with suppress(NotFoundError):
                await client.jetstream().delete_stream(topic)
            await client.jetstream().add_stream(StreamConfig(name=topic, subjects=[f"{topic}.>"]))
        await client.close()

    async def read(self, topic: str) -> list[bytes]:
        client = await nats.connect(self.server.url, allow_reconnect=False)
        stream = client.jetstream()
        number = (await stream.stream_info(topic)).state.messages
        found: list[bytes] = []
        if number:
            pull = await stream.pull_subscribe(
                f"{topic}.>", stream=topic, config=ConsumerConfig(ack_policy=AckPolicy.NONE)
            )
            while len(found) < number:
                found += [message.data for message in await pull.fetch(number - len(found), timeout=30)]
        await client.close()
        return found

    async def feed(self, topic: str, messages: Sequence[tuple[str, bytes]]) -> None:
        client = await nats.connect(self.server.url, allow_reconnect=False)
        for message_id, body in messages:
            await client.jetstream().publish(f"{topic}.fed", body, headers={"Nats-Msg-Id": message_id})
        await client.close()

    async def unacknowledged(self, topic: str) -> int:
        client = await nats.connect(self.server.url, allow_reconnect=False)
        consumers = await client.jsm().consumers_info(topic)
        await client.close()
        return sum((one.num_pending or 0) + (one.num_ack_pending or 0) for one in consumers)


class RabbitmqReader(TopicReader):
    """Its queues are durable, and bound to everything."""

    def topic_to_receive(self, topic: str) -> str:
        return f"{topic}-reader"

    async def open(self, topics: Sequence[str]) -> None:
        self._read: dict[str, list[bytes]] = {topic: [] for topic in topics}
        async with await aio_pika.connect(self.server.url) as connection:
            channel = await connection.channel()
            for topic in topics:
                exchange = await channel.declare_exchange(topic, aio_pika.ExchangeType.TOPIC, durable=True)
                queue = await channel.declare_queue(f"{topic}-reader", durable=True)
                await queue.bind(exchange, "#")
                await queue.purge()

    async def read(self, topic: str) -> list[bytes]:
        async with await aio_pika.connect(self.server.url) as connection:
            queue = await (await connection.channel()).declare_queue(f"{topic}-reader", durable=True)
            while (message := await queue.get(no_ack=True, fail=False)) is not None:
                self._read[topic].append(message.body)
        return list(self._read[topic])

    async def feed(self, topic: str, messages: Sequence[tuple[str, bytes]]) -> None:
        async with await aio_pika.connect(self.server.url) as connection:
            exchange = await (await connection.channel()).get_exchange(topic)
            for message_id, body in messages:
                message = aio_pika.Message(
                    body, message_id=message_id or None, delivery_mode=aio_pika.DeliveryMode.PERSISTENT
                )
                await exchange.publish(message, "fed")

    async def unacknowledged(self, topic: str) -> int:
        async with await aio_pika.connect(self.server.url) as connection:
            queue = await (await connection.channel()).declare_queue(f"{topic}-reader", durable=True)
            return queue.declaration_result.message_count or 0


class KafkaReader(TopicReader):
    def topic_to_receive(self, topic: str) -> str:
        return topic

    async def open(self, topics: Sequence[str]) -> None:
        await asyncio.to_thread(self._open, list(topics))

    async def read(self, topic: str) -> list[bytes]:
        return await asyncio.to_thread(self._read, topic)

    async def feed(self, topic: str, messages: Sequence[tuple[str, bytes]]) -> None:
        producer = Producer(self._settings)
        for _, body in messages:
            producer.produce(topic, body, headers={"origin": "test"})
        assert await asyncio.to_thread(producer.flush, 30) == 0

    async def unacknowledged(self, topic: str) -> int:
        return await asyncio.to_thread(self._unacknowledged, topic)

    @property
    def _settings(self) -> dict[str, Any]:
        return Client("url", self.server.url).settings

    def _open(self, topics: list[str]) -> None:
        admin = AdminClient(self._settings)
        known = admin.list_topics(timeout=30).topics
        if old := [one for one in topics if one in known]:
            for done in admin.delete_topics(old).values():
                done.result(30)
        for group in admin.list_consumer_groups().result(30).valid:
            for done in admin.delete_consumer_groups([group.group_id]).values():
                with suppress(KafkaException):
                    done.result(30)
        give_up_at = time.monotonic() + 60
        while True:
            try:
                for done in admin.create_topics([NewTopic(one, 1, 1) for one in topics]).values():
                    done.result(30)
            except KafkaException:
                # It is still being deleted.
                assert time.monotonic() < give_up_at
                time.sleep(0.2)
            else:
                return

    def _read(self, topic: str) -> list[bytes]:
        consumer = Consumer(self._settings | {"group.id": "reader", "enable.auto.commit": False})
        try:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
            consumer.assign([TopicPartition(topic, 0, 0)])
            found: list[bytes] = []
            while len(found) < end:
                message = consumer.poll(30)
                assert message is not None
                assert message.error() is None
                found.append(message.value() or b"")
            return found
        finally:
            consumer.close()

    def _unacknowledged(self, topic: str) -> int:
        consumer = Consumer(self._settings | {"group.id": f"foliot-{topic}", "enable.auto.commit": False})
        try:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
            (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
            return end - max(0, committed.offset)
        finally:
            consumer.close()


class SqsReader(TopicReader):
    """Its queues have the names of the topics. The reader takes what it reads."""

    keeps_order = False

    def topic_to_receive(self, topic: str) -> str:
        return topic

    async def open(self, topics: Sequence[str]) -> None:
        self._read: dict[str, list[bytes]] = {topic: [] for topic in topics}
        await asyncio.to_thread(self._open, topics)

    async def read(self, topic: str) -> list[bytes]:
        await asyncio.to_thread(self._take, topic)
        return list(self._read[topic])

    async def feed(self, topic: str, messages: Sequence[tuple[str, bytes]]) -> None:
        await asyncio.to_thread(self._feed, topic, messages)

    async def unacknowledged(self, topic: str) -> int:
        return await asyncio.to_thread(self._count, topic)

    @property
    def _client(self) -> Any:
        return Connection("url", self.server.url, connect_seconds=30, answer_seconds=30).client

    def _open(self, topics: Sequence[str]) -> None:
        sqs = self._client
        for topic in topics:
            with suppress(sqs.exceptions.QueueDoesNotExist):
                sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=topic)["QueueUrl"])
            sqs.create_queue(QueueName=topic, Attributes={"FifoQueue": "true"} if topic.endswith(FIFO) else {})

    def _take(self, topic: str) -> None:
        sqs = self._client
        url = sqs.get_queue_url(QueueName=topic)["QueueUrl"]
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            for message in messages:
                self._read[topic].append(message["Body"].encode())
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    def _feed(self, topic: str, messages: Sequence[tuple[str, bytes]]) -> None:
        sqs = self._client
        url = sqs.get_queue_url(QueueName=topic)["QueueUrl"]
        origin = {"origin": {"DataType": "String", "StringValue": "test"}}
        for _, body in messages:
            sqs.send_message(QueueUrl=url, MessageBody=body.decode(errors="replace"), MessageAttributes=origin)

    def _count(self, topic: str) -> int:
        sqs = self._client
        url = sqs.get_queue_url(QueueName=topic)["QueueUrl"]
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(found[name]) for name in names)


READERS: dict[str, type[TopicReader]] = {
    "redis": RedisReader, "nats": NatsReader, "rabbitmq": RabbitmqReader, "kafka": KafkaReader, "sqs": SqsReader,
}  # fmt: skip
