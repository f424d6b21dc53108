"""A real Redis."""

from __future__ import annotations

from redis import Redis
from redis.exceptions import RedisError

from tests.support.brokers.server import SECRET, BrokerServer
from tests.support.debian import require


class RedisServer(BrokerServer):
    kind = "redis"

    @property
    def url(self) -> str:
        return f"redis://:{SECRET}@127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        return [
            require("redis-server", "redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
            "--appendonly", "no", "--requirepass", SECRET, "--dir", str(self.directory),
        ]  # fmt: skip

    def answers(self) -> bool:
        try:
            with self._client() as client:
                return bool(client.ping())
        except RedisError:
            return False

    async def wipe(self) -> None:
        with self._client() as client:
            client.flushall()

    async def count(self, queue: str) -> int:
        with self._client() as client:
            return int(client.zcard(f"foliot:ready:{queue}"))

    async def forge(self, queue: str, messages: list[bytes]) -> None:
        with self._client() as client:
            client.zadd(f"foliot:ready:{queue}", dict.fromkeys(messages, 0.0))

    def _client(self) -> Redis:
        return Redis.from_url(self.url, socket_timeout=5)
