"""The image, built from the Dockerfile and run in real containers: every part, with few rights."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from foliot import __version__
from tests.support.api import Api
from tests.support.containers.compose import Project, project
from tests.support.containers.images import REVISION, SERVICES, foliot_image, services_image
from tests.support.containers.kubernetes import Node
from tests.support.containers.podman import Container, Podman, find_podman
from tests.support.ports import free_port
from tests.support.processes import ROOT
from tests.support.waiting import until

pytestmark = [pytest.mark.deploy, pytest.mark.process, pytest.mark.timeout(900)]
LAB = ROOT / "deploy" / "compose" / "compose.yaml"
MANIFESTS = ROOT / "deploy" / "kubernetes" / "foliot.yaml"
IMAGE_BYTES = 520_000_000
"""The base made of Debian's packages is 225 MB of it: it has apt, perl and a Python with everything."""
FEW_RIGHTS = ("--init", "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--tmpfs=/tmp")
CREATE_TOKEN = ("token", "create", "root", "--role", "admin", "--everywhere", "--database")
LAB_IMAGES = {"postgres:16": SERVICES, "redis:7": SERVICES, "nginx:1.27": SERVICES}


@pytest.fixture
async def podman() -> Podman:
    return find_podman()


@pytest.fixture
async def image(podman: Podman) -> str:
    return await foliot_image(podman)


async def test_the_image_is_small_labelled_and_has_no_tools_to_install_with(podman: Podman, image: str) -> None:
    found = await podman.inspect("image", image)
    prefix = "org.opencontainers.image."
    labels = {name.removeprefix(prefix): text for name, text in found["Labels"].items() if name.startswith(prefix)}
    assert labels["title"] == "Foliot"
    assert (labels["version"], labels["revision"], labels["licenses"]) == (__version__, REVISION, "Apache-2.0")
    assert found["User"] == "10001:10001"
    assert found["Config"]["StopSignal"] == "SIGTERM"
    assert found["Size"] < IMAGE_BYTES
    async with podman.container(image, "-c", "import time; time.sleep(900)", options=["--entrypoint=python"]) as shell:
        assert await shell.execute("foliot", "--version") == f"foliot, version {__version__}"
        for module in ("pip", "hatchling", "pytest"):
            tried = await podman.attempt("exec", shell.name, "python", "-c", f"import {module}")
            assert "ModuleNotFoundError" in tried.output, module
        bill = json.loads(await shell.execute("cat", "/opt/foliot/share/foliot/sbom.cdx.json"))
        installed = "import importlib.metadata as m; print(*(f'{d.name}=={d.version}' for d in m.distributions()))"
        names = set((await shell.execute("python", "-c", installed)).lower().replace("_", "-").split())
    listed = {f"{part['name']}=={part['version']}" for part in bill["components"] if "pkg:pypi/" in part["purl"]}
    assert names - {f"foliot=={__version__}"} == listed


async def test_up_in_a_container_with_few_rights_runs_a_job_and_keeps_its_data(podman: Podman, image: str) -> None:
    async with podman.volume() as volume:
        kept = [*FEW_RIGHTS, f"--volume={volume}:/data"]
        made = await podman.run("run", "--rm", *kept, image, *CREATE_TOKEN, "--data", "/data")
        token = made.splitlines()[-1]
        async with served(podman, image, *kept, token=token) as (container, api):
            assert "<!doctype html>" in (await api.client.get("/ui/")).text.lower()
            assert (await api.client.get("/v1/queues", headers={"Authorization": ""})).status_code == 401
            job = await api.submit(task="shell", payload={"command": "id -u; touch /opt/mark || echo read-only"})
            ended = await api.ended(job["id"])
            assert ended["status"] == "completed"
            logs = (await api.client.get(f"/v1/runs/{job['id']}/logs")).text
            assert "10001" in logs
            assert "read-only" in logs
            assert await container.stop() == 0
        async with served(podman, image, *kept, token=token) as (_, api):
            assert (await api.get(job["id"]))["status"] == "completed"


@asynccontextmanager
async def served(podman: Podman, image: str, *options: str, token: str) -> AsyncIterator[tuple[Container, Api]]:
    """`foliot up` with a published port, once its health check passes."""
    port = free_port()
    published = [*options, f"--publish=127.0.0.1:{port}:8000"]
    command = ("up", "--host", "0.0.0.0", "--plain-http")
    async with podman.container(image, *command, options=published) as container:
        await container.healthy()
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
            yield container, Api(client)


@asynccontextmanager
async def lab(podman: Podman, image: str) -> AsyncIterator[tuple[Project, Api]]:
    """The lab, as `docker compose up` starts it, without Prometheus, Grafana and Jaeger."""
    await services_image(podman)
    port = free_port()
    images = LAB_IMAGES | {"foliot:lab": image}
    async with project(podman, LAB, images=images, ports={"8000": port}) as services:
        await (await services.start("postgres", command=("start-postgres",))).healthy()
        await (await services.start("redis")).healthy()
        migrate = await services.start("migrate")
        assert await migrate.wait() == 0, await migrate.logs()
        await (await services.start("scheduler")).healthy()
        await (await services.start("gate", command=("nginx", "-g", "daemon off;"))).healthy()
        for name in ("worker-1", "worker-2"):
            await services.start(name)
        for name in ("worker-1", "worker-2"):
            await services.running[name].healthy()
        async with httpx.AsyncClient(base_url=f"http://localhost:{port}", timeout=60) as client:
            yield services, Api(client)


async def test_the_lab_runs_its_exercises(podman: Podman, image: str) -> None:
    async with lab(podman, image) as (services, api):
        job = {"name": "long-running-job", "job_type": "immediate", "execution_time_ms": 10_000, "max_retries": 3}
        created = (await api.client.post("/jobs", json=job)).json()
        running = await status_of(api, created["id"], "running")
        victim = (await containers_of_workers(api))[running["worker_id"]]
        await podman.run("kill", services.running[victim].name)
        await (await services.start("worker-3")).healthy()
        done = await status_of(api, created["id"], "completed")
        assert done["attempt"] == 2
        assert (await containers_of_workers(api))[done["worker_id"]] != victim
        assert await services.running["worker-3"].stop() == 0
        assert await services.running["scheduler"].stop() == 0


async def containers_of_workers(api: Api) -> dict[str, str]:
    """The service that each worker is: its host name is that of the container."""
    workers = (await api.client.get("/workers")).json()
    return {worker["id"]: worker["name"].partition(":")[0] for worker in workers}


async def status_of(api: Api, job_id: str, status: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        job: dict[str, Any] = (await api.client.get(f"/jobs/{job_id}")).json()
        return job if job["status"] == status else None

    job = await until(look)
    assert job is not None
    return job


async def test_the_containers_of_the_manifests_make_a_cluster(podman: Podman, image: str, tmp_path: Path) -> None:
    await services_image(podman)
    pods = {
        part["metadata"]["name"].removeprefix("foliot-"): part["spec"]["template"]["spec"]
        for part in yaml.safe_load_all(MANIFESTS.read_text())
        if part and part["kind"] in {"Deployment", "Job"}
    }
    (tmp_path / "url").write_text((LAB.parent / "secrets" / "database_url").read_text())
    tmp_path.chmod(0o755)
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(project(podman, LAB, images=LAB_IMAGES, ports={}))
        await (await services.start("postgres", command=("start-postgres",))).healthy()
        node = Node(podman, image, services.network, {"foliot-database": tmp_path})
        migrate = await stack.enter_async_context(node.run(pods["migrate"]))
        assert await migrate.wait() == 0, await migrate.logs()
        scheduler = await stack.enter_async_context(node.run(pods["scheduler"]))
        token = (await scheduler.execute("foliot", *CREATE_TOKEN)).splitlines()[-1]
        (serves,) = pods["server"]["containers"]
        published = f"127.0.0.1:{(port := free_port())}:{serves['ports'][0]['containerPort']}"
        server = await stack.enter_async_context(node.run(pods["server"], f"--publish={published}"))
        worker = await stack.enter_async_context(node.run(pods["worker-default"]))
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60))
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            await answers(client, serves[probe]["httpGet"]["path"])
        api = Api(client, headers={"Authorization": f"Bearer {token}"})
        job = await api.submit(task="shell", payload={"command": "echo from a pod"}, delay_seconds=1)
        assert (await api.ended(job["id"]))["status"] == "completed"
        for container in (server, worker, scheduler):
            assert await container.stop() == 0, await container.logs()


async def answers(client: httpx.AsyncClient, path: str) -> None:
    async def look() -> bool:
        try:
            return (await client.get(path)).status_code == 200
        except httpx.TransportError:
            return False

    await until(look)
