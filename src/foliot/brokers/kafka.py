"""Kafka: four topics for each queue, one for each level of priority, and one consumer group.

Kafka keeps messages that were received, refuses none, and deletes old ones in large pieces only. So the publisher
deletes the oldest hints of a partition itself, before it holds more than its part of `HINTS_MAX`. A group that reads
for the first time begins with the oldest hint: there are few, and a stale one does no harm.

A partition belongs to one worker. Hints go to the partitions in turn, so a hint that is announced again reaches another
worker. A worker that takes no hints for `IDLE_SECONDS` leaves its partitions to others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from foliot.brokers.base import ANSWER_SECONDS, HINTS_MAX, KEPT_SECONDS, Broker, BrokerUnavailable, ids_of
from foliot.brokers.levels import Buffer, by_level, safe_name
from foliot.brokers.own_thread import OwnThread
from foliot.brokers.topics.kafka import REFUSED, Client
from foliot.errors import ConfigurationError
from foliot.model.priority import LEVELS
from foliot.model.run import StartableRun

T = TypeVar("T")
PARTITIONS = 8
NAME_MAX = 180
"""Kafka allows 249 characters for a whole name."""
BATCH = 500
CONNECT_SECONDS, CONNECT_ATTEMPTS = 3.0, 6
CREATE_SECONDS, LOOKS = 5.0, 50
IDLE_SECONDS = 10
KEPT = {"retention.ms": str(KEPT_SECONDS * 1000), "segment.ms": str(KEPT_SECONDS * 1000), "cleanup.policy": "delete"}
COMMON = {"socket.timeout.ms": 3000, "reconnect.backoff.max.ms": 500}
PUBLISHING = {"linger.ms": 0, "acks": 1, "message.timeout.ms": int(ANSWER_SECONDS * 1000)}
RECEIVING = {
    "auto.offset.reset": "earliest",
    "auto.commit.interval.ms": 1000,
    # It divides each topic evenly. The others count partitions, and might give one worker all that have hints.
    "partition.assignment.strategy": "range",
    "session.timeout.ms": IDLE_SECONDS * 1000,
    "heartbeat.interval.ms": 2000,
    "max.poll.interval.ms": IDLE_SECONDS * 1000,
    "queued.min.messages": 100,
}
UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001
SILENCE = KafkaError._TIMED_OUT  # noqa: SLF001


class KafkaBroker(Broker):
    name = "kafka"

    def __init__(self, url: str, *, prefix: str) -> None:
        self._url = url
        self._prefix = prefix
        self._publisher: Publisher | None = None
        self._pullers: dict[str, Puller] = {}

    async def connect(self) -> None:
        await self._connected().check()

    async def publish(self, queue: str, runs: Sequence[StartableRun]) -> None:
        await self._connected().publish(queue, runs)

    async def receive(self, queue: str, limit: int, wait_seconds: float) -> list[UUID]:
        puller = self._pullers.get(queue)
        if puller is None:
            await self._connected().make(queue)
            group = f"{self._prefix}-{safe_name(queue, NAME_MAX)}"
            topics = {topic_of(self._prefix, queue, level): level for level in LEVELS}
            self._pullers[queue] = puller = Puller(Client("dispatch_url", self._url), group, topics)
        try:
            return await puller.receive(limit, wait_seconds)
        except TopicsDeletedError as error:
            # The next call makes them again. Schedulers that have nothing to publish would not.
            await self._connected().forget_topics()
            await self._pullers.pop(queue).close()
            raise BrokerUnavailable(str(error)) from error

    async def close(self) -> None:
        pullers, publisher = list(self._pullers.values()), self._publisher
        self._pullers, self._publisher = {}, None
        await asyncio.gather(*(puller.close() for puller in pullers))
        if publisher is not None:
            publisher.close()

    def _connected(self) -> Publisher:
        if self._publisher is None:
            self._publisher = Publisher(Client("dispatch_url", self._url), self._prefix)
        return self._publisher


def topic_of(prefix: str, queue: str, level: str) -> str:
    return f"{prefix}.ready.{safe_name(queue, NAME_MAX)}.{level}"


class TopicsDeletedError(Exception):
    """Somebody has deleted topics of a queue. They must be made again."""


class Calls:
    """The calls of one client, in a thread of their own."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.thread = OwnThread(f"kafka {name}")

    async def call(self, work: Callable[[], T]) -> T:
        async with self._answering():
            return await self.thread.call(work)

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        try:
            yield
        except KafkaException as error:
            reported, self.client.error = self.client.error, None
            found: KafkaError = error.args[0]
            if REFUSED in (found.code(), reported and reported.code()):
                raise ConfigurationError("dispatch_url: Kafka refuses the user or the password") from None
            if found.code() in UNKNOWN:
                raise TopicsDeletedError(f"Kafka: {found.name()}") from None
            raise BrokerUnavailable(f"Kafka: {found.name()}: {found.str()}") from error


class Publisher:
    """Makes topics and publishes hints."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._calls = Calls(client, "publisher")
        self._prefix = prefix
        self._admin = AdminClient(client.settings | COMMON)
        self._producer = Producer(client.settings | COMMON | PUBLISHING)
        self._partitions: dict[str, int] = {}
        """Of each topic that exists."""
        self._kept_from: dict[tuple[str, int], int] = {}
        """By topic and partition: the offset before which hints were deleted."""
        self._turn = count()

    async def check(self) -> None:
        await self._calls.call(self._check)

    async def make(self, queue: str) -> None:
        await self._calls.call(lambda: self._make(queue))

    async def forget_topics(self) -> None:
        await self._calls.thread.call(self._partitions.clear)

    async def publish(self, queue: str, runs: Sequence[StartableRun]) -> None:
        try:
            await self._calls.call(lambda: self._publish(queue, runs))
        except TopicsDeletedError as error:
            raise BrokerUnavailable(str(error)) from error

    def close(self) -> None:
        self._producer.purge()
        self._calls.thread.end()

    def _check(self) -> None:
        known = self._list_topics()
        begin = f"{self._prefix}.ready."
        topic = topic_of(self._prefix, "default", "normal")
        refused = self._create([topic], validate_only=True)
        # Topics may have been made for a user that may not.
        if refused and not any(name.startswith(begin) for name in known):
            raise _cannot_create(topic, refused[topic])

    def _list_topics(self) -> dict[str, Any]:
        for attempt in range(CONNECT_ATTEMPTS):
            try:
                return self._admin.list_topics(timeout=CONNECT_SECONDS / CONNECT_ATTEMPTS).topics
            except KafkaException:
                # Tells of a wrong password, for which the call above would wait in vain.
                self._admin.poll(0)
                error = self._calls.client.error
                if attempt + 1 == CONNECT_ATTEMPTS or (error is not None and error.code() == REFUSED):
                    raise
        raise AssertionError

    def _make(self, queue: str) -> None:
        topics = [topic_of(self._prefix, queue, level) for level in LEVELS]
        if all(topic in self._partitions for topic in topics):
            return
        refused = self._create(topics)
        for topic in topics:
            self._partitions[topic] = self._partitions_of(topic, refused.get(topic))

    def _create(self, topics: Sequence[str], *, validate_only: bool = False) -> dict[str, KafkaError]:
        """The errors of topics that can't be made."""
        new = [NewTopic(topic, PARTITIONS, config=KEPT) for topic in topics]
        made = self._admin.create_topics(new, request_timeout=CREATE_SECONDS, validate_only=validate_only)
        refused: dict[str, KafkaError] = {}
        for topic, done in made.items():
            try:
                done.result(CREATE_SECONDS + 1)
            except KafkaException as failed:
                error: KafkaError = failed.args[0]
                if error.code() < 0 or error.retriable():
                    raise
                if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    refused[topic] = error
        return refused

    def _partitions_of(self, topic: str, refused: KafkaError | None) -> int:
        for _ in range(LOOKS):
            found = self._admin.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic]
            if found.error is None and found.partitions:
                return len(found.partitions)
            if refused is not None:
                raise _cannot_create(topic, refused)
            # A new topic may take a moment until the broker tells of it.
            self._admin.poll(CREATE_SECONDS / LOOKS)
        raise KafkaException(KafkaError(SILENCE, f"the topic {topic} does not appear"))

    def _publish(self, queue: str, runs: Sequence[StartableRun]) -> None:
        self._make(queue)
        sent: dict[tuple[str, int], list[int]] = {}
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed.append(error)
            else:
                sent.setdefault((message.topic(), message.partition()), []).append(message.offset())  # type: ignore[arg-type]

        for level, some in by_level(runs).items():
            topic = topic_of(self._prefix, queue, level)
            for run in some:
                partition = next(self._turn) % self._partitions[topic]
                self._producer.produce(topic, str(run.id).encode(), partition=partition, on_delivery=delivered)
        if self._producer.flush(ANSWER_SECONDS) or failed:
            # Nothing of it may arrive later, and the topics may be gone.
            self._producer.purge()
            self._producer.flush(0)
            self._partitions.clear()
            raise KafkaException(failed[0] if failed else KafkaError(SILENCE))
        self._delete_old(sent)

    def _delete_old(self, sent: dict[tuple[str, int], list[int]]) -> None:
        old = []
        for (topic, partition), offsets in sent.items():
            end, most = max(offsets) + 1, max(1, HINTS_MAX // self._partitions[topic])
            if end - self._kept_from.get((topic, partition), 0) > most:
                # Not for each hint: it keeps half of them, or all that are new.
                begin = end - min(most, max(len(offsets), most // 2))
                self._kept_from[topic, partition] = begin
                old.append(TopicPartition(topic, partition, begin))
        if old:
            # A user without the right to do so leaves it to the retention of the topic.
            with suppress(KafkaException):
                for done in self._admin.delete_records(old, request_timeout=ANSWER_SECONDS).values():
                    done.result(2 * ANSWER_SECONDS)


class Puller:
    """Receives the hints of one queue."""

    def __init__(self, client: Client, group: str, topics: dict[str, str]) -> None:
        self._calls = Calls(client, group)
        self._levels = topics
        self._buffer = Buffer()
        self._consumer = Consumer(client.settings | COMMON | RECEIVING | {"group.id": group})
        self._consumer.subscribe(list(topics))

    async def receive(self, limit: int, wait_seconds: float) -> list[UUID]:
        if not self._buffer:
            await self._calls.call(lambda: self._pull(wait_seconds))
        return self._buffer.take(limit)

    async def close(self) -> None:
        """Leaves the group, so that its partitions move at once."""
        with suppress(TimeoutError, BrokerUnavailable, ConfigurationError, TopicsDeletedError, RuntimeError):
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._calls.call(self._consumer.close)
        self._calls.thread.end()

    def _pull(self, wait_seconds: float) -> None:
        first = self._consumer.poll(wait_seconds)
        if first is None:
            # A frozen server is as silent as an empty queue.
            self._probe()
            return
        for message in (first, *self._consumer.consume(BATCH, 0)):
            error = message.error()
            if error is None:
                self._buffer.add(self._levels[message.topic() or ""], ids_of([message.value() or b""]))
            elif error.code() in UNKNOWN or error.code() == REFUSED:
                raise KafkaException(error)

    def _probe(self) -> None:
        topic = next(iter(self._levels))
        found = self._consumer.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)


def _cannot_create(topic: str, error: KafkaError) -> ConfigurationError:
    return ConfigurationError(
        f"dispatch_url: Kafka refuses to create the topic {topic} ({error.name()}); "
        "allow this user to create topics, or create them as docs/brokers.md says"
    )
