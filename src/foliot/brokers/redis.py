"""Redis: one sorted set for each queue, in the order in which PostgreSQL would start the runs.

A hint that is published twice is one member of the set. A set is cut to its most urgent members, and expires when
nobody adds to it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import redis.exceptions as errors
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from foliot.brokers.base import ANSWER_SECONDS, HINTS_MAX, KEPT_SECONDS, Broker, BrokerUnavailable, ids_of
from foliot.errors import ConfigurationError
from foliot.model.run import StartableRun

REFUSALS = (errors.AuthenticationError, errors.AuthorizationError, errors.NoPermissionError)


class RedisBroker(Broker):
    name = "redis"

    def __init__(self, url: str, *, prefix: str) -> None:
        self._prefix = prefix
        parts = urlsplit(url)
        try:
            # Options of the client stay out of reach of the URL: they would change the time limits below.
            self._redis = Redis.from_url(
                urlunsplit(parts._replace(query="")),
                socket_timeout=ANSWER_SECONDS,
                socket_connect_timeout=ANSWER_SECONDS,
                retry=Retry(NoBackoff(), 0),
                client_name=prefix,
            )
        except ValueError as error:
            raise ConfigurationError(f"dispatch_url: {error}") from None

    async def connect(self) -> None:
        async with self._answering():
            await self._redis.ping()

    async def publish(self, queue: str, runs: Sequence[StartableRun]) -> None:
        key = self._key(queue)
        async with self._answering():
            pipeline = self._redis.pipeline(transaction=False)
            pipeline.zadd(key, {str(run.id): run.rank for run in runs})
            pipeline.zremrangebyrank(key, HINTS_MAX, -1)
            pipeline.expire(key, KEPT_SECONDS)
            await pipeline.execute()

    async def receive(self, queue: str, limit: int, wait_seconds: float) -> list[UUID]:
        key = self._key(queue)
        async with self._answering():
            members = await self._pop(key, limit)
            if not members and (first := await self._redis.bzpopmin(key, wait_seconds)):
                # More hints came with the first one, as a rule.
                members = [first[1], *await self._pop(key, limit - 1)]
        return ids_of(members)

    async def close(self) -> None:
        await self._redis.aclose()

    async def _pop(self, key: str, limit: int) -> list[Any]:
        found: Any = await self._redis.zpopmin(key, limit) if limit else []
        return [member for member, _ in found]

    def _key(self, queue: str) -> str:
        return f"{self._prefix}:ready:{queue}"

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        try:
            yield
        except REFUSALS as error:
            raise ConfigurationError(f"dispatch_url: Redis refuses the user or password: {error}") from None
        except errors.ResponseError as error:
            raise BrokerUnavailable(f"Redis: {error}") from error
        except (errors.RedisError, OSError) as error:
            raise BrokerUnavailable(f"Redis: {type(error).__name__}: {error}") from error
