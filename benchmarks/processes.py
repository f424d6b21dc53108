"""Starts Foliot's processes, as a user would, and waits until they are ready."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

import httpx

from benchmarks.bench import Bench
from foliot.model.roles import Role
from foliot.model.tokens import new_token_text
from foliot.store.tokens import NewToken

READY_SECONDS = 180.0
SETTLE_SECONDS = 0.5
WORKERS = "select count(*) from foliot.workers where expires_at > clock_timestamp() and draining_at is null"
SHARDS = "select count(*) from foliot.shards where expires_at > clock_timestamp()"
Variables = Callable[[int], Mapping[str, str]]


def no_variables(_: int) -> Mapping[str, str]:
    return {}


@asynccontextmanager
async def workers(
    bench: Bench, number: int, *queues: str, variables: Variables = no_variables, **settings: str
) -> AsyncIterator[Sequence[int]]:
    """Starts a number of worker processes on queues such as `default=1000`, and waits until they are idle and
    registered. `variables` returns the environment variables of the n-th."""
    others = await bench.session.fetchval(WORKERS)
    arguments = [part for queue in queues for part in ("--queue", queue)]
    environments = [_environment(bench, settings) | dict(variables(which)) for which in range(number)]
    async with _started(["worker", "benchmarks.tasks:app", *arguments], environments) as pids:
        await until(bench, WORKERS, others + number)
        yield pids


@asynccontextmanager
async def scheduler(bench: Bench, **settings: str) -> AsyncIterator[int]:
    """Starts one scheduler node, and waits until it owns all shards."""
    async with _started(["scheduler"], [_environment(bench, settings)]) as pids:
        await until(bench, SHARDS, await bench.session.fetchval("select count(*) from foliot.shards"))
        yield pids[0]


@asynccontextmanager
async def server(bench: Bench, **settings: str) -> AsyncIterator[int]:
    """Starts one API process on a free port. It requires a token to exist."""
    environment = _environment(bench, settings)
    creating = [sys.executable, "-m", "foliot", "token", "create", f"bench {uuid4()}", "--role", "viewer", "--database"]
    token = await asyncio.create_subprocess_exec(*creating, env=environment, stdin=DEVNULL, stdout=DEVNULL)
    if await token.wait() != 0:
        raise RuntimeError("foliot token create failed")
    async with _started(["server", "--port", "0"], [environment]) as pids:
        yield pids[0]


@dataclass(frozen=True, slots=True)
class WorkerServer:
    """An API process, and a token for workers without database access."""

    pid: int
    url: str
    token: str


@asynccontextmanager
async def worker_server(bench: Bench, **settings: str) -> AsyncIterator[WorkerServer]:
    token, token_id, digest = new_token_text()
    made = NewToken(token_id, digest, f"bench {uuid4()}", Role.WORKER, "default", "bench", None, None)
    await bench.store.tokens.insert_token(made)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = _environment(bench, {"requests_per_second": "0", "connections_max": "10000", **settings})
    async with _started(["server", "--port", str(port)], [environment]) as pids:
        url = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient() as client, asyncio.timeout(READY_SECONDS):
            while not await _answers(client, url):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        yield WorkerServer(pids[0], url, token)


async def _answers(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(f"{url}/healthz")).is_success
    except httpx.HTTPError:
        return False


@asynccontextmanager
async def remote_workers(bench: Bench, number: int, *queues: str, server: WorkerServer) -> AsyncIterator[Sequence[int]]:
    """Workers that reach only the server."""
    others = await bench.session.fetchval(WORKERS)
    arguments = [part for queue in queues for part in ("--queue", queue)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
    environment = kept | {"FOLIOT_TOKEN": server.token, "FOLIOT_LOG_LEVEL": "warning"}
    command = ["worker", "benchmarks.tasks:app", "--server", server.url, *arguments]
    async with _started(command, [environment] * number) as pids:
        await until(bench, WORKERS, others + number)
        yield pids


async def until(bench: Bench, question: str, answer: object, *arguments: object, pause: float = 0.05) -> None:
    """Polls PostgreSQL until the answer is this one, or a larger number."""
    async with asyncio.timeout(READY_SECONDS):
        while (found := await bench.session.fetchval(question, *arguments)) != answer and not _is_more(found, answer):  # noqa: ASYNC110
            await asyncio.sleep(pause)
    await asyncio.sleep(SETTLE_SECONDS)


def _is_more(found: object, answer: object) -> bool:
    return type(found) is int and type(answer) is int and found > answer


def _environment(bench: Bench, settings: Mapping[str, str]) -> dict[str, str]:
    named = {f"FOLIOT_{name.upper()}": value for name, value in settings.items()}
    return os.environ | {"FOLIOT_DATABASE_URL": bench.url, "FOLIOT_LOG_LEVEL": "warning"} | named


@asynccontextmanager
async def _started(arguments: Sequence[str], environments: Sequence[Mapping[str, str]]) -> AsyncIterator[Sequence[int]]:
    command = [sys.executable, "-m", "foliot", *arguments]
    started: list[asyncio.subprocess.Process] = []
    try:
        for environment in environments:
            process = await asyncio.create_subprocess_exec(*command, env=environment, stdin=DEVNULL)
            started.append(process)
        yield [process.pid for process in started]
        for process in started:
            if process.returncode is not None:
                raise RuntimeError(
                    f"foliot {arguments[0]} ended while it was measured, with exit code {process.returncode}"
                )
    finally:
        for process in started:
            if process.returncode is None:
                process.terminate()
        for process in started:
            await process.wait()
