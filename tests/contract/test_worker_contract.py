"""The contract of the worker protocol: the steps of `steps.json` against a real server and scheduler node.

A worker in any language can be checked against the same list.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.tokens import bearer
from tests.support.waiting import PATIENCE_SECONDS, until
from tests.worker.remote.cluster import RemoteCluster, remote_cluster

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]
STEPS = Path(__file__).with_name("steps.json")
NAMED = re.compile(r"\{((?:uuid:)?\w+)\}")
ANY = "{any}"


class Contract:
    def __init__(self, cluster: RemoteCluster, client: httpx.AsyncClient) -> None:
        self._cluster = cluster
        self._client = client
        self._kept: dict[str, Any] = {}

    async def take(self, step: dict[str, Any]) -> None:
        if "until" in step:
            wanted = self._filled(step["until"])
            await until(lambda: self._has(step, wanted))
            answer = self._last
        else:
            answer = await self._send(step)
        assert answer.status_code == step["status"], (step["name"], answer.status_code, answer.text)
        found = answer.json()
        assert fits(self._filled(step.get("expect", {})), found), (step["name"], step.get("expect"), found)
        assert not found.keys() & set(step.get("lacks", ())), (step["name"], found)
        for field, parts in self._filled(step.get("contains", {})).items():
            for part in parts:
                assert any(fits(part, one) for one in found[field]), (step["name"], part, found)
        for name, path in step.get("keep", {}).items():
            value = found
            for part in path:
                value = value[part]
            self._kept[name] = value

    async def _has(self, step: dict[str, Any], wanted: Any) -> bool:
        self._last = await self._send(step)
        return fits(wanted, self._last.json())

    async def _send(self, step: dict[str, Any]) -> httpx.Response:
        headers = bearer(self._cluster.tokens[step["as"]])
        if "get" in step:
            return await self._client.get(self._filled(step["get"]), headers=headers)
        return await self._client.post(self._filled(step["post"]), json=self._filled(step["body"]), headers=headers)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._filled(inner) for inner in value]
        if not isinstance(value, str) or value == ANY:
            return value
        if whole := NAMED.fullmatch(value):
            return self._value(whole[1])
        return NAMED.sub(lambda found: str(self._value(found[1])), value)

    def _value(self, name: str) -> Any:
        if name.startswith("uuid:"):
            self._kept.setdefault(name, str(uuid4()))
        return self._kept[name]


def fits(wanted: Any, found: Any) -> bool:
    """Whether the answer has what is wanted. Objects may have more fields; lists may not have more items."""
    if wanted == ANY:
        return found is not None
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(key in found and fits(one, found[key]) for key, one in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(fits, wanted, found))
    return bool(wanted == found)


async def test_the_server_keeps_the_contract(database_url: str) -> None:
    async with (
        remote_cluster(database_url) as cluster,
        httpx.AsyncClient(base_url=cluster.url, timeout=PATIENCE_SECONDS) as client,
    ):
        contract = Contract(cluster, client)
        for step in json.loads(STEPS.read_text())["steps"]:
            await contract.take(step)
