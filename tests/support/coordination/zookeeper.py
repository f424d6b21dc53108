"""A real ZooKeeper."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from kazoo.client import KazooClient

from tests.support.coordination.server import CoordinatorServer
from tests.support.debian import require
from tests.support.real_server import SECRET

T = TypeVar("T")
JAR = "/usr/share/java/zookeeper.jar"


class ZooKeeperServer(CoordinatorServer):
    kind = "zookeeper"

    @property
    def url(self) -> str:
        return f"zookeeper://foliot:{SECRET}@127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        # The package has no program on the path.
        require("/usr/share/zookeeper/bin/zkServer.sh", "zookeeper")
        if (java := require("java", "default-jre-headless")) == "":
            pytest.skip("java is missing: install the Debian package default-jre-headless")
        (self.directory / "zoo.cfg").write_text(
            f"tickTime=500\ndataDir={self.directory / 'data'}\nclientPort={self.port}\n"
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=ruok\nmaxClientCnxns=0\n"
        )
        return [
            java, "-Xmx128m", "-XX:+UseSerialGC", "-cp", f"{self.directory}:{JAR}",
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self.directory / "zoo.cfg"),
        ]  # fmt: skip

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as found:
                found.sendall(b"ruok")
                return found.recv(4) == b"imok"
        except OSError:
            return False

    async def forge(self, prefix: str, name: str) -> None:
        await asyncio.to_thread(self._with, lambda client: client.create(f"/{prefix}/members/{name}", b""))

    async def remove_worker(self, prefix: str, name: str) -> None:
        await asyncio.to_thread(self._with, lambda client: client.delete(f"/{prefix}/workers/{name}"))

    async def shards(self, prefix: str) -> list[str]:
        def read(client: Any) -> list[str]:
            root = f"/{prefix}/shards"
            return [client.get(f"{root}/{name}")[0].decode() for name in client.get_children(root)]

        return await asyncio.to_thread(self._with, read)

    def _with(self, work: Callable[[Any], T]) -> T:
        client = KazooClient(f"127.0.0.1:{self.port}", auth_data=[("digest", f"foliot:{SECRET}")])
        client.start(30)
        try:
            return work(client)
        finally:
            client.stop()
            client.close()
