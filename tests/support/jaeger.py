"""A real Jaeger, built from its Go module, and its API."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
import tempfile
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.ports import free_port
from tests.support.waiting import until

VERSION = "1.62.0"
# Kept between test runs: the build takes minutes.
DIRECTORY = Path(tempfile.gettempdir()) / f"foliot-tests-jaeger-{VERSION}"
PACKAGE = "github.com/jaegertracing/jaeger/cmd/all-in-one"
BUILD_SECONDS = 1500
OTHER_PORTS = (
    "admin.http.host-port", "collector.grpc-server.host-port", "collector.http-server.host-port",
    "http-server.host-port", "processor.jaeger-binary.server-host-port", "processor.jaeger-compact.server-host-port",
    "processor.zipkin-compact.server-host-port", "query.grpc-server.host-port",
)  # fmt: skip


class Jaeger:
    def __init__(self, http_port: int, grpc_port: int, query_port: int) -> None:
        self.http_url = f"http://127.0.0.1:{http_port}"
        self.grpc_url = f"http://127.0.0.1:{grpc_port}"
        self._client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{query_port}", timeout=30, trust_env=False)

    async def is_up(self) -> bool:
        try:
            return (await self._client.get("/api/services")).status_code == 200
        except httpx.TransportError:
            return False

    async def services(self) -> list[str]:
        return list((await self._client.get("/api/services")).json()["data"] or [])

    async def spans_of(self, trace_id: str) -> list[dict[str, Any]]:
        """None as long as nothing of the trace has arrived."""
        answer = await self._client.get(f"/api/traces/{trace_id}")
        if answer.status_code == 404:
            return []
        assert answer.status_code == 200, answer.text
        (trace,) = answer.json()["data"]
        return list(trace["spans"])

    async def close(self) -> None:
        await self._client.aclose()


@asynccontextmanager
async def jaeger_server() -> AsyncIterator[Jaeger]:
    program = await asyncio.to_thread(_built)
    http_port, grpc_port, query_port = free_port(), free_port(), free_port()
    ports = {name: free_port() for name in OTHER_PORTS} | {
        "collector.otlp.http.host-port": http_port,
        "collector.otlp.grpc.host-port": grpc_port,
        "query.http-server.host-port": query_port,
    }
    arguments = [f"--{name}=127.0.0.1:{port}" for name, port in ports.items()]
    environment = os.environ | {"SPAN_STORAGE_TYPE": "memory"}
    process = await asyncio.create_subprocess_exec(
        str(program), *arguments, env=environment, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
    )
    jaeger = Jaeger(http_port, grpc_port, query_port)
    try:
        await until(jaeger.is_up)
        yield jaeger
    finally:
        await jaeger.close()
        process.terminate()
        await process.wait()


def _built() -> Path:
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is missing: Jaeger comes as a Go module")
    program = DIRECTORY / "jaeger"
    DIRECTORY.mkdir(exist_ok=True)
    with (DIRECTORY / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            (DIRECTORY / "go.mod").write_text("module jaeger\n\ngo 1.23\n")
            (DIRECTORY / "import.go").write_text(f'package jaeger\n\nimport _ "{PACKAGE}"\n')
            for command in (["get", f"{PACKAGE}@v{VERSION}"], ["build", "-ldflags=-s -w", "-o", str(program), PACKAGE]):
                done = subprocess.run(
                    [go, *command], cwd=DIRECTORY, env=os.environ | {"GOFLAGS": "-mod=mod -buildvcs=false"},
                    capture_output=True, text=True, check=False, timeout=BUILD_SECONDS,
                )  # fmt: skip
                assert done.returncode == 0, done.stderr
    return program
