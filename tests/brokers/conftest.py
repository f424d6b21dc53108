"""One server of each kind for all tests of a session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator

import pytest

from foliot.brokers.base import Broker
from tests.conftest import test_servers
from tests.support.brokers.kafka import KafkaServer
from tests.support.brokers.nats import NatsServer
from tests.support.brokers.rabbitmq import RabbitmqServer
from tests.support.brokers.redis import RedisServer
from tests.support.brokers.server import BrokerServer
from tests.support.brokers.sqs import SqsServer

SERVERS: dict[str, type[BrokerServer]] = {
    "redis": RedisServer, "nats": NatsServer, "rabbitmq": RabbitmqServer, "kafka": KafkaServer, "sqs": SqsServer,
}  # fmt: skip
# A server that takes seconds to start would slow down the usual run of the tests.
SLOW = {"rabbitmq", "kafka", "sqs"}
KINDS = [pytest.param(kind, marks=[pytest.mark.deploy] if kind in SLOW else []) for kind in SERVERS]


def only(kinds: Collection[str]) -> pytest.MarkDecorator:
    """For tests of what not all of these brokers are used for."""
    found = [param for param in KINDS if param.values[0] in kinds]
    return pytest.mark.parametrize("running_server", found, indirect=True, scope="session")


@pytest.fixture(scope="session", params=KINDS)
def running_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerServer]:
    server = SERVERS[request.param](tmp_path_factory.mktemp(request.param))
    try:
        server.start()
        test_servers.append(server)
        yield server
    finally:
        server.stop()
        if server in test_servers:
            test_servers.remove(server)


@pytest.fixture
async def server(running_server: BrokerServer) -> BrokerServer:
    """The server, empty."""
    await running_server.wipe()
    return running_server


@pytest.fixture
async def broker(server: BrokerServer) -> AsyncIterator[Broker]:
    broker = server.broker()
    await broker.connect()
    yield broker
    await broker.close()
