"""The clients in other languages pass their own tests against a real server."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.processes import ROOT
from tests.worker.remote.cluster import RemoteCluster, remote_cluster

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(600)]
CLIENTS = ROOT / "clients"


async def ran(*command: str, cwd: Path, environment: Mapping[str, str]) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, env=dict(environment), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-8000:]


def environment_of(cluster: RemoteCluster) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
    return kept | {
        "FOLIOT_URL": cluster.url,
        "FOLIOT_TOKEN": cluster.tokens["worker"],
        "FOLIOT_OPERATOR_TOKEN": cluster.tokens["admin"],
    }


@pytest.mark.skipif(shutil.which("npm") is None, reason="Node with npm is not installed")
async def test_the_client_for_typescript(database_url: str, tmp_path: Path) -> None:
    here = tmp_path / "typescript"
    shutil.copytree(CLIENTS / "typescript", here, ignore=shutil.ignore_patterns("node_modules", "dist"))
    async with remote_cluster(database_url) as cluster:
        environment = environment_of(cluster)
        await ran("npm", "ci", "--no-audit", "--no-fund", cwd=here, environment=environment)
        await ran("npm", "run", "build", cwd=here, environment=environment)
        await ran("npm", "test", cwd=here, environment=environment)


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
async def test_the_client_for_go(database_url: str) -> None:
    async with remote_cluster(database_url) as cluster:
        environment = environment_of(cluster)
        await ran("go", "vet", "./...", cwd=CLIENTS / "go", environment=environment)
        await ran("go", "test", "-count=1", "./...", cwd=CLIENTS / "go", environment=environment)
