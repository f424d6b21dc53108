"""Runs the container of a pod template with its arguments, environment and rights, as a Kubernetes node would."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.containers.podman import Container, Podman


@dataclass(frozen=True, slots=True)
class Node:
    podman: Podman
    image: str
    network: str
    secrets: Mapping[str, Path]
    """The directory of each secret that pods mount."""

    @asynccontextmanager
    async def run(self, pod: Mapping[str, Any], *options: str) -> AsyncIterator[Container]:
        (container,) = pod["containers"]
        given = [f"--network={self.network}", "--no-healthcheck", *options]
        user, rights = pod["securityContext"], container["securityContext"]
        given += [f"--user={user['runAsUser']}:{user['runAsGroup']}"]
        given += [f"--cap-drop={capability}" for capability in rights["capabilities"]["drop"]]
        given += ["--read-only"] if rights["readOnlyRootFilesystem"] else []
        given += [] if rights["allowPrivilegeEscalation"] else ["--security-opt=no-new-privileges"]
        given += [f"--memory={container['resources']['limits']['memory'].replace('Mi', 'm')}"]
        given += [f"--env={variable['name']}={variable['value']}" for variable in container["env"]]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        for mount in container["volumeMounts"]:
            volume = volumes[mount["name"]]
            if "emptyDir" in volume:
                given.append(f"--tmpfs={mount['mountPath']}")
            else:
                given.append(f"--volume={self.secrets[volume['secret']['secretName']]}:{mount['mountPath']}:ro")
        async with self.podman.container(self.image, *map(str, container["args"]), options=given) as running:
            yield running
