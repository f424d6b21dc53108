"""Kafka topics. The messages of a run have the same key, and so the same partition, which keeps their order.

The client has threads of its own, and its calls wait. So each call runs in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as KafkaMessage

from foliot.brokers.topics.base import (
    CONNECT_SECONDS,
    SEND_SECONDS,
    Message,
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
