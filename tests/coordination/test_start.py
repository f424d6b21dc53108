"""A scheduler node with a coordinator that can't be used does not start, and says what to do. It starts without a
coordinator that does not answer."""

from __future__ import annotations

import asyncio
import sys

import pytest

from foliot.assembly import Stop, run_scheduler
from foliot.clock import SystemClock
from foliot.config import Config, load, shown
from foliot.coordination.choice import coordinator_of
from foliot.errors import ConfigurationError
from tests.support.coordination.server import CoordinatorServer
from tests.support.ports import free_port
from tests.support.processes import FoliotProcess
from tests.support.real_server import SECRET


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kazoo", None)
    monkeypatch.delitem(sys.modules, "foliot.coordination.zookeeper", raising=False)
    config = Config(coordination="zookeeper", coordination_url="zookeeper://127.0.0.1")
    with pytest.raises(
        ConfigurationError, match=r"^coordination: zookeeper needs .*pip install 'foliot\[zookeeper\]'$"
    ):
        coordinator_of(config, clock=SystemClock())


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("etcd", ""),
        ("etcd", "127.0.0.1:2379"),
        ("etcd", "etcd://127.0.0.1:2379"),
        ("etcd", "http://127.0.0.1:2379/path"),
        ("etcd", "http://one:2379,,two"),
        ("etcd", "http://one:port"),
        ("zookeeper", "http://127.0.0.1:2181"),
        ("zookeeper", "zookeeper://"),
        ("zookeeper", "zookeeper://one?tls=1"),
    ],
)
def test_a_url_of_another_form_is_refused_with_the_right_one(kind: str, url: str) -> None:
    with pytest.raises(
        ConfigurationError, match=rf"coordination_url must look like \w+://.* for coordination = {kind}"
    ):
        load({"coordination": kind, "coordination_url": url}, {})


def test_a_url_without_a_kind_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="coordination is postgres; set it to etcd or zookeeper"):
        load({"coordination_url": "http://127.0.0.1:2379"}, {})


def test_the_password_is_not_shown() -> None:
    for url in (f"http://root:{SECRET}@one:1,two:2", f"zookeeper://foliot:{SECRET}@one,two/chroot"):
        assert SECRET not in str(shown("coordination_url", url))


async def test_a_scheduler_does_not_start_with_a_wrong_password(
    server: CoordinatorServer, database_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = server.settings()
    good = server.coordinator(**settings)
    await good.connect()
    await good.close()
    config = Config(**settings | {"coordination_url": server.wrong_url, "database_url": database_url})
    with pytest.raises(ConfigurationError, match=r"^coordination_url: \w+ refuses the user or password: [^\n]+$"):
        await run_scheduler(config, Stop.new())
    said = "".join(capfd.readouterr())
    assert SECRET not in said
    assert "swordfish" not in said


async def test_a_server_that_is_something_else_is_named() -> None:
    """Any HTTP server that is no etcd."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nConnection: close\r\n\r\nsorry")
        await writer.drain()
        writer.close()

    other = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with other:
        url = f"http://127.0.0.1:{other.sockets[0].getsockname()[1]}"
        coordinator = coordinator_of(Config(coordination="etcd", coordination_url=url), clock=SystemClock())
        with pytest.raises(ConfigurationError, match=r"does not answer as etcd 3\.4 or newer does \(status 404\)"):
            await coordinator.connect()
        await coordinator.close()


async def test_a_node_whose_coordinator_does_not_answer_works_all_the_same(database_url: str) -> None:
    around = {
        "FOLIOT_DATABASE_URL": database_url,
        "FOLIOT_COORDINATION": "etcd",
        "FOLIOT_COORDINATION_URL": f"http://127.0.0.1:{free_port()}",
    }
    async with FoliotProcess("scheduler", environment=around) as node:
        await node.event("CoordinatorLost", coordinator="etcd")
        await node.event("ShardsChanged", count=100)
