"""A message broker or a coordinator beside the cluster: a real server, reached through proxies that can be cut."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.chaos.door import Door
from tests.support.brokers.kafka import KafkaServer
from tests.support.brokers.nats import NatsServer
from tests.support.brokers.rabbitmq import RabbitmqServer
from tests.support.brokers.redis import RedisServer
from tests.support.brokers.server import BrokerServer
from tests.support.brokers.sqs import SqsServer
from tests.support.coordination.etcd import EtcdServer
from tests.support.coordination.server import CoordinatorServer
from tests.support.coordination.zookeeper import ZooKeeperServer

BROKERS: Mapping[str, type[BrokerServer]] = {
    "redis": RedisServer, "rabbitmq": RabbitmqServer, "nats": NatsServer, "kafka": KafkaServer, "sqs": SqsServer,
}  # fmt: skip
COORDINATORS: Mapping[str, type[CoordinatorServer]] = {"etcd": EtcdServer, "zookeeper": ZooKeeperServer}


class Service:
    """Each process has a proxy of its own, so that one alone can be cut off."""

    def __init__(
        self, name: str, setting: str, server: BrokerServer | CoordinatorServer, users: tuple[str, ...]
    ) -> None:
        self.name = name
        self.server = server
        self.users = users
        """The parts of Foliot that use it."""
        self.doors: list[Door] = []
        self._setting = setting

    async def start(self) -> None:
        if isinstance(self.server, KafkaServer):
            # Clients connect to the address that it names, so all of them share one proxy.
            self.server.advertised_port = (await self._new_door()).port
        await asyncio.to_thread(self.server.start)

    async def stop(self) -> None:
        for door in self.doors:
            await door.close()
        await asyncio.to_thread(self.server.stop)

    async def door(self) -> Door:
        """For one more process."""
        if isinstance(self.server, KafkaServer):
            return self.doors[0]
        return await self._new_door()

    def environment(self, door: Door) -> dict[str, str]:
        name = f"FOLIOT_{self._setting.upper()}"
        return {name: self.server.kind, f"{name}_URL": self.server.url_at(door.port)}

    async def wipe(self) -> None:
        """Starts again without any data."""
        await asyncio.to_thread(self._wipe)

    def _wipe(self) -> None:
        self.server.kill()
        shutil.rmtree(self.server.directory)
        self.server.directory.mkdir()
        self.server.start()

    async def _new_door(self) -> Door:
        door = Door(self._connect, reads_statements=False)
        await door.open()
        self.doors.append(door)
        return door

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.server.port)


def services_of(directory: Path, dispatch: str, coordination: str, say: Callable[[str], None]) -> list[Service]:
    """The services that the cluster needs, not yet started."""
    found: list[Service] = []
    if dispatch != "postgres":
        place = directory / "broker"
        place.mkdir()
        found.append(Service("broker", "dispatch", BROKERS[dispatch](place), ("scheduler", "worker")))
    if coordination != "postgres":
        place = directory / "coordinator"
        place.mkdir()
        found.append(Service("coordinator", "coordination", COORDINATORS[coordination](place), ("scheduler", "worker")))
    for service in found:
        say(f"with {service.server.kind} as {service.name}")
    return found
