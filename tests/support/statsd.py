"""A real StatsD server, from npm, and what it has counted."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.ports import free_port
from tests.support.waiting import until

VERSION = "0.9.0"
# Kept between test runs.
DIRECTORY = Path(tempfile.gettempdir()) / f"foliot-tests-statsd-{VERSION}"
CONFIGURATION = """{{
  address: "127.0.0.1", port: {port}, mgmt_address: "127.0.0.1", mgmt_port: {management},
  backends: [], flushInterval: 3600000, graphite: {{legacyNamespace: false}}
}}"""


class StatsdServer:
    def __init__(self, port: int, management: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self._management = management

    async def ask(self, what: str) -> dict[str, Any]:
        """`counters`, `timers` or `gauges` since the server started."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._management)
        try:
            writer.write(f"{what}\n".encode())
            answer = (await asyncio.wait_for(reader.readuntil(b"END"), 30)).removesuffix(b"END")
        finally:
            writer.close()
        # Printed as a JavaScript value, with names in quotes only where they must be.
        script = "process.stdout.write(JSON.stringify(eval('(' + require('fs').readFileSync(0, 'utf8') + ')')))"
        process = await asyncio.create_subprocess_exec(
            "node", "-e", script, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate(answer)
        found: dict[str, Any] = msgspec.json.decode(output)
        return found

    async def is_up(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self._management)
        except OSError:
            return False
        writer.close()
        return True


@asynccontextmanager
async def statsd_server(directory: Path) -> AsyncIterator[StatsdServer]:
    program = _installed()
    port, management = free_port(), free_port()
    configuration = directory / "statsd.js"
    configuration.write_text(CONFIGURATION.format(port=port, management=management))
    process = await asyncio.create_subprocess_exec(
        "node", str(program), str(configuration), stdout=asyncio.subprocess.DEVNULL
    )
    try:
        server = StatsdServer(port, management)
        await until(server.is_up)
        yield server
    finally:
        process.terminate()
        await process.wait()


def _installed() -> Path:
    if not shutil.which("npm"):
        pytest.skip("npm is missing: install Node.js to test against a real StatsD server")
    program = DIRECTORY / "node_modules" / "statsd" / "stats.js"
    DIRECTORY.mkdir(exist_ok=True)
    with (DIRECTORY / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            command = ["npm", "install", "--silent", "--ignore-scripts", "--omit=optional", f"statsd@{VERSION}"]
            environment = os.environ | {"npm_config_update_notifier": "false"}
            subprocess.run(command, cwd=DIRECTORY, env=environment, check=True, capture_output=True, timeout=300)
    return program
