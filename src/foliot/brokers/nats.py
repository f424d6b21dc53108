"""NATS with JetStream: one stream in memory, with four subjects for each queue, one for each level of priority.

The stream refuses more than a number of hints of a subject, and drops them after a minute. Workers pull, so a busy
worker takes no hints.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from uuid import UUID

from nats.aio.client import Client
from nats.errors import AuthorizationError, Error, NoRespondersError
from nats.errors import TimeoutError as Silence
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, ServiceUnavailableError

from foliot.brokers.base import ANSWER_SECONDS, HINTS_MAX, KEPT_SECONDS, Broker, BrokerUnavailable, ids_of
from foliot.brokers.levels import Buffer, by_level, safe_name
from foliot.errors import ConfigurationError
from foliot.model.priority import LEVELS
from foliot.model.run import StartableRun
from foliot.service import own_task

NO_JETSTREAM = "dispatch_url: this NATS server has no JetStream; start it with nats-server --jetstream"
UNUSED_SECONDS = 3600.0
PROBE_EACH = 4
"""The number of receives without a hint after which it looks for the stream. That costs more than a ping."""
Pull = JetStreamContext.PullSubscription


class NatsBroker(Broker):
    name = "nats"

    def __init__(self, url: str, *, prefix: str) -> None:
        self._url = url
        self._prefix = prefix
        self._stream = f"{prefix}-ready"
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._pullers: dict[str, Puller] = {}
        self._until_probe = PROBE_EACH

    async def connect(self) -> None:
        async with self._answering():
            await self._connected()

    async def publish(self, queue: str, runs: Sequence[StartableRun]) -> None:
        async with self._answering():
            client = await self._connected()
            for level, some in by_level(runs).items():
                subject = self._subject(queue, level)
                for run in some:
                    # Without an answer for each: a full stream may refuse hints.
                    await client.publish(subject, str(run.id).encode())
            # The answer proves that the server is there, and the stream too: somebody may have deleted it.
            await client.jsm(timeout=ANSWER_SECONDS).stream_info(self._stream)

    async def receive(self, queue: str, limit: int, wait_seconds: float) -> list[UUID]:
        async with self._answering():
            client = await self._connected()
            puller = self._pullers.get(queue)
            if puller is None:
                self._pullers[queue] = puller = Puller(await self._subscribe(client, queue))
            if ids := await puller.receive(limit, wait_seconds):
                return ids
            # A frozen server is as silent as an empty queue, and so is a stream that somebody has deleted.
            self._until_probe -= 1
            if self._until_probe > 0:
                # `flush` takes whole seconds only, as far as its type is concerned.
                await client.flush(timeout=ANSWER_SECONDS)  # type: ignore[arg-type]
            else:
                self._until_probe = PROBE_EACH
                name = f"{safe_name(queue)}-{LEVELS[0]}"
                await client.jsm(timeout=ANSWER_SECONDS).consumer_info(self._stream, name)
            return []

    async def close(self) -> None:
        await self._disconnect()

    async def _subscribe(self, client: Client, queue: str) -> dict[str, Pull]:
        jetstream = client.jetstream(timeout=ANSWER_SECONDS)
        found = {}
        for level in LEVELS:
            name = f"{safe_name(queue)}-{level}"
            consumer = ConsumerConfig(
                durable_name=name,
                filter_subject=self._subject(queue, level),
                ack_policy=AckPolicy.EXPLICIT,
                inactive_threshold=UNUSED_SECONDS,
            )
            await jetstream.add_consumer(self._stream, consumer)
            found[level] = await jetstream.pull_subscribe_bind(name, self._stream)
        return found

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client is None or not self._client.is_connected:
                await self._disconnect()
                self._client = client = Client()
                # Otherwise the client tries an absent server sixty times, two seconds apart.
                await client.connect(
                    self._url,
                    allow_reconnect=False,
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    connect_timeout=2,
                    error_cb=_ignore,
                    name=self._prefix,
                )
                await self._make_stream(client)
            return self._client

    async def _make_stream(self, client: Client) -> None:
        stream = StreamConfig(
            name=self._stream,
            subjects=[f"{self._prefix}.ready.>"],
            retention=RetentionPolicy.WORK_QUEUE,
            storage=StorageType.MEMORY,
            discard=DiscardPolicy.NEW,
            discard_new_per_subject=True,
            max_msgs_per_subject=HINTS_MAX,
            max_age=KEPT_SECONDS,
        )
        try:
            await client.jetstream(timeout=ANSWER_SECONDS).add_stream(stream)
        except (NoRespondersError, ServiceUnavailableError):
            raise ConfigurationError(NO_JETSTREAM) from None
        except APIError as error:
            raise ConfigurationError(
                f"dispatch_url: NATS refuses the stream {self._stream}: {error.description}; "
                "allow it for this user, or delete a stream of this name"
            ) from None

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        for puller in self._pullers.values():
            await puller.close()
        self._pullers.clear()
        if client is not None:
            with suppress(Exception):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await client.close()

    def _subject(self, queue: str, level: str) -> str:
        return f"{self._prefix}.ready.{safe_name(queue)}.{level}"

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        try:
            yield
        except AuthorizationError:
            raise ConfigurationError("dispatch_url: NATS refuses the user, password or token") from None
        except (Error, OSError, TimeoutError) as error:
            await self._disconnect()
            if "authorization violation" in str(error).lower():
                raise ConfigurationError("dispatch_url: NATS refuses the user, password or token") from None
            raise BrokerUnavailable(f"NATS: {type(error).__name__}: {error}") from error


class Puller:
    """Pulls the hints of one queue. Each level has one pull under way while hints are requested."""

    def __init__(self, pulls: dict[str, Pull]) -> None:
        self._pulls = pulls
        self._buffer = Buffer()
        self._under_way: dict[str, asyncio.Task[list[UUID]]] = {}

    async def receive(self, limit: int, wait_seconds: float) -> list[UUID]:
        if not self._buffer:
            for level, pull in self._pulls.items():
                if level not in self._under_way:
                    self._under_way[level] = own_task(_pull(pull, limit, wait_seconds), name=f"pull {level}")
            await asyncio.wait(self._under_way.values(), timeout=wait_seconds, return_when=asyncio.FIRST_COMPLETED)
            await self._collect()
        return self._buffer.take(limit)

    async def close(self) -> None:
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        self._under_way.clear()

    async def _collect(self) -> None:
        for level, task in list(self._under_way.items()):
            if task.done():
                del self._under_way[level]
                self._buffer.add(level, task.result())


async def _pull(pull: Pull, limit: int, wait_seconds: float) -> list[UUID]:
    try:
        messages = await pull.fetch(limit, timeout=wait_seconds)
    except (TimeoutError, Silence):
        return []
    for message in messages:
        await message.ack()
    return ids_of(message.data for message in messages)


async def _ignore(_: Exception) -> None:
    """Every call reports its own errors. The client would print them too."""
