"""Starts a RabbitMQ with a node name, ports and directories of its own. Persistent messages are on disk before it
confirms them."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.rivals.installing import Unavailable

# The script of the Debian package in the search path would become another user.
PROGRAM = "/usr/lib/rabbitmq/bin/rabbitmq-server"
CONFIGURATION = """\
listeners.tcp.1 = 127.0.0.1:{port}
default_user = bench
default_pass = bench
loopback_users = none
"""
START_SECONDS = 120.0


@asynccontextmanager
async def started(directory: Path) -> AsyncIterator[tuple[str, int]]:
    """Returns its URL and process id."""
    if shutil.which(PROGRAM) is None:
        raise Unavailable("there is no RabbitMQ on this machine (the Debian package `rabbitmq-server`)")
    port, distribution, epmd = _free_ports(3)
    home = directory / "rabbitmq"
    home.mkdir()
    (home / "rabbitmq.conf").write_text(CONFIGURATION.format(port=port))
    (home / "enabled_plugins").write_text("[].\n")
    environment = os.environ | {
        "HOME": str(home),
        "RABBITMQ_NODENAME": f"bench{port}@localhost",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution),
        "ERL_EPMD_PORT": str(epmd),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
    }
    server = await asyncio.create_subprocess_exec(
        PROGRAM, env=environment, cwd=home, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
    )
    try:
        await _answers(port)
        yield f"amqp://bench:bench@127.0.0.1:{port}/%2F", server.pid
    finally:
        server.terminate()
        await server.wait()
        shutil.rmtree(home, ignore_errors=True)


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [probe.getsockname()[1] for probe in probes]


async def _answers(port: int) -> None:
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"AMQP\x00\x00\x09\x01")
                is_ready = bool(await reader.read(8))
                writer.close()
            except OSError:
                is_ready = False
            if is_ready:
                return
            await asyncio.sleep(0.2)
