"""A real Prometheus that scrapes a Foliot, and its API."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.support.debian import require
from tests.support.ports import free_port
from tests.support.processes import ROOT
from tests.support.waiting import until

FILES = ROOT / "deploy" / "compose" / "prometheus"


class Prometheus:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def ask(self, path: str, **parameters: str) -> Any:
        answer = await self._client.get(f"/api/v1/{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    async def query(self, expr: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.ask("query", query=expr))["result"]
        return found

    async def is_up(self) -> bool:
        try:
            return (await self._client.get("/-/ready")).status_code == 200
        except httpx.TransportError:
            return False


@asynccontextmanager
async def prometheus_server(directory: Path, target: str) -> AsyncIterator[Prometheus]:
    """With the lab's rules, but quicker than in the lab."""
    program = await asyncio.to_thread(require, "prometheus", "prometheus")
    config = yaml.safe_load((FILES / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(FILES / name) for name in config["rule_files"]]
    (scraped,) = config["scrape_configs"]
    scraped["static_configs"] = [{"targets": [target]}]
    configuration = directory / "prometheus.yml"
    configuration.write_text(yaml.safe_dump(config))
    port = free_port()
    arguments = [
        f"--config.file={configuration}", f"--storage.tsdb.path={directory / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=exemplar-storage",
    ]  # fmt: skip
    process = await asyncio.create_subprocess_exec(program, *arguments, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as client:
            server = Prometheus(client)
            await until(server.is_up)
            yield server
    finally:
        process.terminate()
        await process.wait()
