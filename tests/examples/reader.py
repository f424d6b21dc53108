"""Somebody who follows an example's README: each server in a terminal of its own, everything else line by line."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from tests.support.ports import free_port
from tests.support.processes import ROOT
from tests.support.waiting import until

BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Some blocks install packages and compile.
BLOCK_SECONDS = 400
# A program that keeps running, by the beginning of its command, and the address where it answers; or None for a worker.
SERVERS = {
    "foliot up": "8000/readyz", "uvicorn ": "8080/docs", "python manage.py runserver": "8080/admin/login/",
    "npm run site": "8080/", "npm run worker": None, "./thumbnails worker": None,
}  # fmt: skip
WORKERS_OF_UP = 2
NOT_COPIED = shutil.ignore_patterns("__pycache__", "node_modules", "dist")


class Reader:
    """Follows the README of a copy of the example. Ports differ, so that examples run beside each other."""

    def __init__(self, example: str, directory: Path) -> None:
        self.directory = directory / "examples" / example
        shutil.copytree(ROOT / "examples" / example, self.directory, ignore=NOT_COPIED)
        if "../../clients/" in (self.directory / "README.md").read_text():
            shutil.copytree(ROOT / "clients", directory / "clients", ignore=NOT_COPIED)
        self.ports = {"8000": str(free_port()), "8080": str(free_port())}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FOLIOT_", "DJANGO_"))}
        self._environment = kept | {
            "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
            "FOLIOT_URL": f"http://127.0.0.1:{self.ports['8000']}",
            "FOLIOT_PORT": self.ports["8000"],
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._servers: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Presses Ctrl-C in each terminal, the last one first."""
        for server in reversed(self._servers):
            if server.returncode is None:
                os.killpg(server.pid, signal.SIGINT)
                await server.wait()

    async def follow(self) -> str:
        """Runs every block, and returns what the commands printed."""
        printed = ""
        for text in BLOCK.findall((self.directory / "README.md").read_text()):
            script = re.sub(r"\b80[08]0\b", lambda port: self.ports[port[0]], text)
            server = next((command for command in SERVERS if text.startswith(command)), None)
            printed += await self._run(script) if server is None else await self._serve(script, SERVERS[server])
        return printed

    async def _run(self, script: str) -> str:
        shell = await asyncio.create_subprocess_exec(
            "bash", "-euo", "pipefail", "-c", script, cwd=self.directory, env=self._environment,
            stdin=DEVNULL, stdout=PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        assert shell.stdout is not None
        output = b""
        try:
            async with asyncio.timeout(BLOCK_SECONDS):
                while chunk := await shell.stdout.read(65536):
                    output += chunk
                await shell.wait()
        except TimeoutError:
            os.killpg(shell.pid, signal.SIGKILL)
            await shell.wait()
        assert shell.returncode == 0, script + output.decode()[-4000:]
        return output.decode()

    async def _serve(self, command: str, address: str | None) -> str:
        server = await asyncio.create_subprocess_exec(
            "bash", "-c", f"exec {command}", cwd=self.directory, env=self._environment, stdin=DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        self._servers.append(server)
        async with httpx.AsyncClient() as client:

            async def is_there() -> bool:
                assert server.returncode is None, f"{command} has ended"
                try:
                    return await self._is_there(client, address)
                except httpx.TransportError:
                    return False

            await until(is_there)
        return ""

    async def _is_there(self, client: httpx.AsyncClient, address: str | None) -> bool:
        """Whether the address answers; without one, whether a worker of another language has registered."""
        if address is None:
            workers = (await client.get(f"http://127.0.0.1:{self.ports['8000']}/v1/workers")).json()["items"]
            return len(workers) > WORKERS_OF_UP
        port, _, path = address.partition("/")
        return (await client.get(f"http://127.0.0.1:{self.ports[port]}/{path}")).status_code == 200
