"""Starts a Redis for the rivals that need one. Every write is on disk before it is confirmed, as in PostgreSQL."""

from __future__ import annotations

import asyncio
import shutil
import socket
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from benchmarks.rivals.installing import Unavailable


@asynccontextmanager
async def started(directory: Path) -> AsyncIterator[tuple[str, int]]:
    """Returns its URL and process id."""
    program = shutil.which("redis-server")
    if program is None:
        raise Unavailable("there is no redis-server on this machine (the Debian package `redis-server`)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = directory / "redis"
    home.mkdir()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(home), "--save", "", "--appendonly", "yes"]
    redis = await asyncio.create_subprocess_exec(
        program, *options, "--appendfsync", "always", stdin=DEVNULL, stdout=DEVNULL
    )
    try:
        await _answers(port)
        yield f"redis://127.0.0.1:{port}/0", redis.pid
    finally:
        redis.terminate()
        await redis.wait()
        shutil.rmtree(home)


async def _answers(port: int) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            with closing(writer):
                return
