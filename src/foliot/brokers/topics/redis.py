"""Redis streams. A stream of events begins with its first message, and keeps about the last million."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
import redis.exceptions as errors
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

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

KEPT = 1_000_000
FIELD = "event"
BODIES = (b"event", b"body", b"data", b"payload")
"""The first of these fields of an entry is the message. An entry without them is one by itself."""
ANSWER_SECONDS = 5.0
CONSUMER = "foliot"
REFUSALS = (errors.AuthenticationError, errors.AuthorizationError, errors.NoPermissionError)


def connection(setting: str, url: str, *, answer_seconds: float) -> Redis:
    try:
        # Options of the client stay out of reach of the URL: they would change the time limits.
        return Redis.from_url(
            urlunsplit(urlsplit(url)._replace(query="")),
            socket_timeout=answer_seconds,
            socket_connect_timeout=CONNECT_SECONDS,
            retry=Retry(NoBackoff(), 0),
            client_name="foliot",
        )
    except ValueError as error:
        raise ConfigurationError(f"{setting}: {error}") from None


@asynccontextmanager
async def answering(setting: str) -> AsyncIterator[None]:
    try:
        yield
    except REFUSALS as error:
        raise ConfigurationError(f"{setting}: Redis refuses the user or password: {error}") from None
    except (errors.RedisError, OSError) as error:
        raise TopicUnavailable(f"Redis: {type(error).__name__}: {error}") from None


class RedisSender(Sender):
    name = "redis"

    def __init__(self, setting: str, url: str) -> None:
        self._setting = setting
        self._redis = connection(setting, url, answer_seconds=SEND_SECONDS)

    async def check(self, topics: Sequence[str]) -> None:
        async with answering(self._setting):
            for topic in topics:
                if await self._redis.type(topic) not in (b"stream", b"none"):
                    raise ConfigurationError(
                        f"{self._setting}: the key {topic!r} in Redis is something else than a stream; "
                        "choose another topic"
                    )

    async def send(self, messages: Sequence[Message]) -> None:
        async with answering(self._setting):
            pipeline = self._redis.pipeline(transaction=False)
            for message in messages:
                pipeline.xadd(message.topic, {"id": message.id, FIELD: message.body}, maxlen=KEPT, approximate=True)
            await pipeline.execute()

    async def close(self) -> None:
        await self._redis.aclose()


class RedisReceiver(Receiver):
    """A consumer group with one consumer, whose name all processes share. So the next process continues with the
    entries that the one before it did not acknowledge."""

    name = "redis"

    def __init__(self, url: str, *, topic: str, group: str) -> None:
        self._redis = connection("url", url, answer_seconds=ANSWER_SECONDS)
        self._topic = topic
        self._group = group
        self._has_group = False
        self._place: str | None = "0"
        """Behind which entries that were delivered before are read again. None: all of them have been."""

    async def receive(self, limit: int, wait_seconds: float) -> list[Received]:
        async with answering("url"):
            if not self._has_group:
                await self._make_group()
            if self._place is not None:
                found = await self._read(self._place, limit, None)
                self._place = found[-1].id if found else None
                if found:
                    return found
            return await self._read(">", limit, int(wait_seconds * 1000))

    async def acknowledge(self, messages: Sequence[Received]) -> None:
        async with answering("url"):
            await self._redis.xack(self._topic, self._group, *(message.receipt for message in messages))

    async def close(self) -> None:
        await self._redis.aclose()

    async def _make_group(self) -> None:
        try:
            await self._redis.xgroup_create(self._topic, self._group, id="0", mkstream=True)
        except errors.ResponseError as error:
            if "WRONGTYPE" in str(error):
                raise ConfigurationError(f"topic: the key {self._topic!r} in Redis is no stream") from None
            if "BUSYGROUP" not in str(error):
                raise
        self._has_group = True

    async def _read(self, place: str, limit: int, wait_milliseconds: int | None) -> list[Received]:
        try:
            answer: Any = await self._redis.xreadgroup(
                self._group, CONSUMER, {self._topic: place}, count=limit, block=wait_milliseconds
            )
        except errors.ResponseError as error:
            if "NOGROUP" in str(error):
                # Somebody has deleted the stream.
                self._has_group = False
                return []
            raise
        entries = answer[0][1] if answer else []
        # An entry that was deleted before it was acknowledged has no fields.
        return [_received(entry_id.decode(), fields or {}) for entry_id, fields in entries]


def _received(entry_id: str, fields: dict[bytes, bytes]) -> Received:
    texts = {name.decode(errors="replace"): value.decode(errors="replace") for name, value in fields.items()}
    for name in BODIES:
        if name in fields:
            headers = {other: text for other, text in texts.items() if other != name.decode()}
            return Received(entry_id, fields[name], headers, entry_id)
    return Received(entry_id, msgspec.json.encode(texts), {}, entry_id)
