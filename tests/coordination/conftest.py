"""One server of each kind for all tests of a session. Each test has a prefix of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import test_servers
from tests.support.coordination.etcd import EtcdServer
from tests.support.coordination.server import CoordinatorServer
from tests.support.coordination.zookeeper import ZooKeeperServer

SERVERS: dict[str, type[CoordinatorServer]] = {"etcd": EtcdServer, "zookeeper": ZooKeeperServer}
# A server that takes seconds to start would slow down the usual run of the tests.
SLOW = {"zookeeper"}
KINDS = [pytest.param(kind, marks=[pytest.mark.deploy] if kind in SLOW else []) for kind in SERVERS]


@pytest.fixture(scope="session", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorServer]:
    server = SERVERS[request.param](tmp_path_factory.mktemp(request.param))
    try:
        server.start()
        test_servers.append(server)
        yield server
    finally:
        server.stop()
        if server in test_servers:
            test_servers.remove(server)
