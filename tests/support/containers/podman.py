"""Podman with a storage of its own, and containers that a test leaves behind in no case."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import uuid
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import kept
from tests.support.debian import require
from tests.support.waiting import until

NAME = "containers"
DIRECTORY = kept.DIRECTORY / NAME
COMMAND_SECONDS = 400
# A sandbox may forbid to raise limits, so containers get fixed ones. Nothing here starts health checks by itself
# without systemd, so they have no interval, and tests run them.
SETTINGS = """
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
init_path = "{init}"
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    output: str


class Podman:
    def __init__(self, program: str, settings: Path) -> None:
        self._command = [
            program, "--root", str(DIRECTORY / "storage"), "--runroot", str(DIRECTORY / "run"), "--log-level", "fatal",
        ]  # fmt: skip
        self._environment = os.environ | {"CONTAINERS_CONF": str(settings)}

    async def run(self, *arguments: str) -> str:
        """Runs a command of podman that must succeed, and returns its output."""
        done = await self.attempt(*arguments)
        assert done.code == 0, f"podman {' '.join(arguments)}\n{done.output[-4000:]}"
        return done.output.strip()

    async def attempt(self, *arguments: str) -> Done:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            *arguments,
            env=self._environment,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return Done(process.returncode, output.decode("utf-8", "replace"))

    async def inspect(self, kind: str, name: str) -> dict[str, Any]:
        (found,) = json.loads(await self.run(kind, "inspect", name))
        return dict(found)

    @asynccontextmanager
    async def network(self) -> AsyncIterator[str]:
        """A network whose containers find each other by name."""
        name = await self.run("network", "create", f"foliot-{uuid.uuid4().hex[:10]}")
        try:
            yield name
        finally:
            await self.attempt("network", "rm", "--force", name)

    @asynccontextmanager
    async def volume(self) -> AsyncIterator[str]:
        name = await self.run("volume", "create", f"foliot-{uuid.uuid4().hex[:10]}")
        try:
            yield name
        finally:
            await self.attempt("volume", "rm", "--force", name)

    @asynccontextmanager
    async def container(self, image: str, *arguments: str, options: Sequence[str] = ()) -> AsyncIterator[Container]:
        """A running container. It is removed in the end, with its anonymous volumes."""
        name = f"foliot-{uuid.uuid4().hex[:10]}"
        try:
            await self.run(
                "run", "--detach", f"--name={name}", "--health-interval=disable", *options, image, *arguments
            )
            yield Container(self, name)
        finally:
            await self.attempt("rm", "--force", "--time=0", "--volumes", name)


@dataclass(frozen=True, slots=True)
class Container:
    podman: Podman
    name: str

    async def execute(self, *command: str) -> str:
        return await self.podman.run("exec", self.name, *command)

    async def logs(self) -> str:
        return await self.podman.run("logs", self.name)

    async def is_running(self) -> bool:
        return bool((await self.podman.inspect("container", self.name))["State"]["Running"])

    async def is_healthy(self) -> bool:
        return (await self.podman.attempt("healthcheck", "run", self.name)).code == 0

    async def healthy(self) -> None:
        """Waits until the health check of the container passes."""

        async def look() -> bool:
            assert await self.is_running(), await self.logs()
            return await self.is_healthy()

        try:
            await until(look)
        except AssertionError as error:
            health = (await self.podman.inspect("container", self.name))["State"]["Health"]
            error.add_note(f"{json.dumps(health, indent=1)[-2000:]}\n{(await self.logs())[-4000:]}")
            raise

    async def wait(self) -> int:
        return int(await self.podman.run("wait", self.name))

    async def stop(self) -> int:
        """Stops it as `docker stop -t 45` does, and returns the exit code."""
        await self.podman.run("stop", "--time=45", self.name)
        return await self.wait()


def find_podman() -> Podman:
    """Skips the test where containers can't run, and says why."""
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("containers are made of Debian's packages: this needs root on Debian")
    podman = require("podman", "podman")
    for program, package in (
        ("runc", "runc"), ("mmdebstrap", "mmdebstrap"), ("iptables", "iptables"),
        ("dnsname", "golang-github-containernetworking-plugin-dnsname"),
    ):  # fmt: skip
        require(program, package)
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    settings = DIRECTORY / "containers.conf"
    # Written and renamed: tests of another process read it at any time.
    written = settings.with_suffix(f".{os.getpid()}")
    written.write_text(SETTINGS.format(init=require("catatonit", "catatonit")))
    written.replace(settings)
    return Podman(podman, settings)
