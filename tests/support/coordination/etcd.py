"""A real etcd, with users and passwords."""

from __future__ import annotations

import base64
from typing import Any

import httpx

from tests.support.coordination.server import CoordinatorServer
from tests.support.debian import require
from tests.support.ports import free_port
from tests.support.real_server import SECRET


class EtcdServer(CoordinatorServer):
    kind = "etcd"

    @property
    def url(self) -> str:
        return f"http://root:{SECRET}@127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        here, peers = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{free_port()}"
        return [
            require("etcd", "etcd-server"), "--data-dir", str(self.directory / "data"), "--listen-client-urls", here,
            "--advertise-client-urls", here, "--listen-peer-urls", peers,
        ]  # fmt: skip

    def answers(self) -> bool:
        try:
            return bool(self._ask("maintenance/status", {}).get("leader"))
        except httpx.HTTPError:
            return False

    def prepare(self) -> None:
        self._ask("auth/user/add", {"name": "root", "password": SECRET})
        self._ask("auth/user/grant", {"user": "root", "role": "root"})
        self._ask("auth/enable", {})

    async def forge(self, prefix: str, name: str) -> None:
        key = base64.b64encode(f"{prefix}/members/{name}".encode()).decode()
        self._ask("kv/put", {"key": key, "value": ""}, token=self._token())

    async def remove_worker(self, prefix: str, name: str) -> None:
        key = base64.b64encode(f"{prefix}/workers/{name}".encode()).decode()
        assert self._ask("kv/deleterange", {"key": key}, token=self._token())["deleted"] == "1"

    async def shards(self, prefix: str) -> list[str]:
        start, end = (base64.b64encode(f"{prefix}/shards{last}".encode()).decode() for last in "/0")
        found = self._ask("kv/range", {"key": start, "range_end": end}, token=self._token())
        return [base64.b64decode(one.get("value", "")).decode() for one in found.get("kvs", ())]

    def _token(self) -> str:
        return str(self._ask("auth/authenticate", {"name": "root", "password": SECRET})["token"])

    def _ask(self, path: str, body: dict[str, Any], token: str = "") -> Any:
        headers = {"Authorization": token} if token else {}
        answer = httpx.post(f"http://127.0.0.1:{self.port}/v3/{path}", json=body, headers=headers, timeout=10)
        return answer.json()
