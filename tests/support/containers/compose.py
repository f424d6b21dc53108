"""Starts services of a compose file as containers: with their commands, environment, secrets, rights and limits."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.support.containers.podman import Container, Podman


class Project:
    """The services in a network of their own. `images` replaces images that only a registry has, and `ports` those
    that the file publishes."""

    def __init__(
        self, podman: Podman, file: Path, network: str, *, images: Mapping[str, str], ports: Mapping[str, int]
    ) -> None:
        self._podman = podman
        self._directory = file.parent
        self._file = yaml.safe_load(file.read_text())
        self.network = network
        self._images = images
        self._ports = ports
        self._stack = AsyncExitStack()
        self.running: dict[str, Container] = {}

    async def start(self, name: str, *, command: tuple[str, ...] = ()) -> Container:
        """`command` replaces that of an image which is replaced."""
        service = self._file["services"][name]
        started = self._podman.container(
            self._images[service["image"]],
            *(command or map(str, service.get("command", ()))),
            options=[*self._place(name, service), *self._surroundings(service), *self._rights(service)],
        )
        self.running[name] = await self._stack.enter_async_context(started)
        return self.running[name]

    async def close(self) -> None:
        await self._stack.aclose()

    def _place(self, name: str, service: Mapping[str, Any]) -> list[str]:
        if (mode := service.get("network_mode", "")).startswith("service:"):
            return [f"--network=container:{self.running[mode.removeprefix('service:')].name}"]
        options = [f"--network={self.network}", f"--network-alias={name}"]
        options += [f"--hostname={service['hostname']}"] if "hostname" in service else []
        for port in service.get("ports", ()):
            address, outside, inside = port.split(":")
            options.append(f"--publish={address}:{self._ports[outside]}:{inside}")
        return options

    def _surroundings(self, service: Mapping[str, Any]) -> list[str]:
        options = [f"--env={name}={value}" for name, value in service.get("environment", {}).items()]
        for secret in service.get("secrets", ()):
            path = self._directory / self._file["secrets"][secret]["file"]
            options.append(f"--volume={path.resolve()}:/run/secrets/{secret}:ro")
        for volume in service.get("volumes", ()):
            source, _, target = volume.partition(":")
            # A named volume becomes one without a name, that goes with its container.
            place = f"{(self._directory / source).resolve()}:{target}" if source.startswith(".") else target
            options.append(f"--volume={place}")
        check = service.get("healthcheck", {})
        if "test" in check:
            kind, *command = check["test"]
            assert kind == "CMD"
            options.append(f"--health-cmd={json.dumps(command)}")
        elif check.get("disable"):
            options.append("--no-healthcheck")
        return options

    def _rights(self, service: Mapping[str, Any]) -> list[str]:
        limits = service["deploy"]["resources"]["limits"]
        options = [f"--cpus={limits['cpus']}", f"--memory={limits['memory']}"]
        options += ["--read-only"] if service.get("read_only") else []
        options += ["--init"] if service.get("init") else []
        for mount in service.get("tmpfs", ()):
            # Docker gives such a mount the owner that it names. Podman can't: a volume gets the image's owner.
            options.append(f"--volume={mount.partition(':')[0]}" if "uid=" in mount else f"--tmpfs={mount}")
        options += [f"--cap-drop={capability}" for capability in service.get("cap_drop", ())]
        return [*options, *(f"--security-opt={one}" for one in service.get("security_opt", ()))]


@asynccontextmanager
async def project(podman: Podman, file: Path, **replaced: Mapping[str, Any]) -> AsyncIterator[Project]:
    async with podman.network() as network:
        services = Project(podman, file, network, **replaced)
        try:
            yield services
        finally:
            await services.close()
