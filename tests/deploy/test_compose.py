"""The lab of deploy/compose: its shape, and its services' commands as real processes with nginx in front."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
import yaml

from tests.support.debian import require
from tests.support.go_modules import module_directory
from tests.support.ports import free_port
from tests.support.processes import ROOT, FoliotProcess
from tests.support.waiting import until

LAB = ROOT / "deploy" / "compose"
COMPOSE = yaml.safe_load((LAB / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"] == "foliot:lab"]
# The module that Docker Compose itself reads files with. It contains the schema of the specification.
SCHEMA_MODULE = "github.com/compose-spec/compose-go/v2@v2.16.2"


def test_the_lab_has_the_services_ports_and_profiles_of_the_exercise() -> None:
    always = {name for name, service in SERVICES.items() if "profiles" not in service}
    exercise = {"postgres", "redis", "scheduler", "worker-1", "worker-2", "prometheus", "grafana", "jaeger"}
    assert always - exercise == {"gate", "migrate"}
    assert exercise <= always
    profiles = {profile: name for name, service in SERVICES.items() for profile in service.get("profiles", ())}
    assert profiles == {"scale": "worker-3", "kafka": "kafka", "rabbitmq": "rabbitmq", "etcd": "etcd"}
    ports = {port for name in always for port in SERVICES[name].get("ports", ())}
    assert {f"127.0.0.1:{outside}" for outside in ("8000:8000", "9090:9090", "3001:3000", "16686:16686")} <= ports
    assert SERVICES["postgres"]["environment"]["POSTGRES_USER"] == "scheduler"
    assert SERVICES["postgres"]["environment"]["POSTGRES_DB"] == "jobscheduler"
    assert SERVICES["grafana"]["environment"]["GF_SECURITY_ADMIN_USER"] == "admin"
    assert (LAB / "secrets" / "grafana_password").read_text() == "admin"


def test_compose_in_the_root_includes_the_lab() -> None:
    root = yaml.safe_load((ROOT / "compose.yaml").read_text())
    assert [ROOT / path for path in root["include"]] == [LAB / "compose.yaml"]


@pytest.mark.parametrize("name", SERVICES)
def test_service_is_limited_checked_and_reachable_from_this_machine_only(name: str) -> None:
    service = SERVICES[name]
    assert {"cpus", "memory"} <= set(service["deploy"]["resources"]["limits"])
    assert "healthcheck" in service
    assert not re.search(r":latest$|^[^:]+$", service["image"])
    for port in service.get("ports", ()):
        assert port.startswith("127.0.0.1:")
    for needed in service.get("depends_on", {}):
        assert needed in SERVICES
    for volume in service.get("volumes", ()):
        source = volume.partition(":")[0]
        assert (LAB / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]


@pytest.mark.parametrize("name", OURS)
def test_our_services_run_with_few_rights_and_read_secrets_from_files(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["init"]
    assert service["environment"]["FOLIOT_DATABASE_URL_FILE"] == "/run/secrets/database_url"
    assert not [value for value in service["environment"].values() if "lab-only" in value]


def test_secrets_fit_each_other() -> None:
    for secret in COMPOSE["secrets"].values():
        assert (LAB / secret["file"]).read_text()
    password = (LAB / "secrets" / "postgres_password").read_text()
    assert f"//scheduler:{password}@postgres:5432/jobscheduler" in (LAB / "secrets" / "database_url").read_text()


def test_the_dashboard_of_the_exercise_has_its_panel() -> None:
    dashboard = json.loads((LAB / "grafana" / "dashboards" / "overview.json").read_text())
    assert "Worker Throughput" in [panel["title"] for panel in dashboard["panels"]]


def test_grafana_and_prometheus_load_the_files_that_there_are() -> None:
    loaded = yaml.safe_load((LAB / "prometheus" / "prometheus.yml").read_text())["rule_files"]
    assert {path.name for path in (LAB / "prometheus").iterdir()} == {"prometheus.yml", "rules_test.yml", *loaded}
    sources = yaml.safe_load((LAB / "grafana" / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert {source["uid"]: source["url"] for source in sources} == {
        "prometheus": "http://prometheus:9090",
        "jaeger": "http://jaeger:16686",
    }
    assert "--enable-feature=exemplar-storage" in SERVICES["prometheus"]["command"]


@pytest.mark.deploy
def test_compose_file_follows_the_specification() -> None:
    schema = json.loads((module_directory(SCHEMA_MODULE) / "schema" / "compose-spec.json").read_text())
    jsonschema.validate(COMPOSE, schema)
    jsonschema.validate(yaml.safe_load((ROOT / "compose.yaml").read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"services": {"a": {"imagee": "b"}}}, schema)


class Lab:
    """Starts the commands of the compose file with its environment. Only ports and the paths of secrets differ."""

    def __init__(self, directory: Path, database_url: str) -> None:
        self._directory = directory
        self._port, self._gate = free_port(), free_port()
        (directory / "secrets").mkdir()
        (directory / "secrets" / "database_url").write_text(database_url)
        self.url = f"http://localhost:{self._gate}"
        self._ports = {"8001": str(self._port), "8000": str(self._gate)}

    def process(self, name: str) -> FoliotProcess:
        environment = {key: self._here(text) for key, text in SERVICES[name]["environment"].items()}
        data = {"FOLIOT_DATA": str(self._directory / "data")}
        return FoliotProcess(*map(self._here, SERVICES[name]["command"]), environment=environment | data)

    async def check(self, name: str) -> int:
        """Runs the health check of a service, as on a machine whose name is that of the container."""
        kind, _, *arguments = SERVICES[name]["healthcheck"]["test"]
        assert kind == "CMD"
        # Nothing resolves the name of the container here, so the request names it in its header.
        there = f"urllib.request.Request('http://127.0.0.1:{self._gate}/workers', headers={{'Host': 'scheduler'}})"
        arguments = [self._here(text.replace('"http://scheduler:8000/workers"', there)) for text in arguments]
        process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=DEVNULL, stderr=DEVNULL)
        return await process.wait()

    @asynccontextmanager
    async def gate(self) -> AsyncIterator[None]:
        nginx = await asyncio.to_thread(require, "nginx", "nginx-light")
        config = self._directory / "gate.conf"
        config.write_text(f"daemon off; pid {self._directory}/pid;\n" + self._here((LAB / "gate.conf").read_text()))
        arguments = [nginx, "-c", str(config), "-e", "stderr", "-p", str(self._directory)]
        process = await asyncio.create_subprocess_exec(*arguments, stdin=DEVNULL, stderr=PIPE)
        try:
            yield
        finally:
            process.terminate()
            await process.communicate()

    def _here(self, text: str) -> str:
        text = text.replace("/run/secrets", str(self._directory / "secrets"))
        return re.sub(r"\b800[01]\b", lambda port: self._ports[port[0]], text)


@pytest.mark.deploy
@pytest.mark.process
@pytest.mark.timeout(400)
async def test_the_commands_of_the_lab_run_a_job(tmp_path: Path, postgres: Any) -> None:
    database = await postgres.empty()
    lab = Lab(tmp_path, postgres.url_of(database))
    async with AsyncExitStack() as stack:
        migrate = await stack.enter_async_context(lab.process("migrate"))
        assert await migrate.wait() == 0, migrate.lines
        scheduler = await stack.enter_async_context(lab.process("scheduler"))
        await scheduler.event("ProcessStarted", part="up")
        await stack.enter_async_context(lab.gate())
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=lab.url, timeout=30))

        async def gate_answers() -> bool:
            try:
                return (await client.get("/readyz")).status_code == 200
            except httpx.TransportError:
                return False

        await until(gate_answers)
        assert await lab.check("scheduler") == 0
        assert await lab.check("worker-1") == 1
        for name in ("worker-1", "worker-2", "worker-3"):
            worker = await stack.enter_async_context(lab.process(name))
            await worker.event("ProcessStarted", part="worker")
        assert [worker["name"].split(":")[0] for worker in (await client.get("/workers")).json()] == 3 * [
            socket.gethostname()
        ]
        assert await lab.check("worker-1") == 0
        job = {"name": "my-first-job", "job_type": "immediate", "payload": {"value": 42}, "execution_time_ms": 20}
        created = await client.post("/jobs", json=job)
        assert created.status_code == 201, created.text

        async def completed() -> bool:
            answer = await client.get(f"/jobs/{created.json()['id']}")
            return bool(answer.json()["status"] == "completed")

        await until(completed)
        await other_containers_see_only_health_metrics_and_workers(client)
    await postgres.drop(database)


async def other_containers_see_only_health_metrics_and_workers(client: httpx.AsyncClient) -> None:
    inside = {"Host": "scheduler:8000"}
    metrics = await client.get("/metrics", headers=inside)
    assert metrics.status_code == 200
    assert "active_workers_total 3.0" in metrics.text
    assert (await client.get("/v1/jobs", headers=inside)).status_code == 403
    assert (await client.post("/workers", json={}, headers=inside)).status_code == 403
    # A name that a web page bound to 127.0.0.1 is refused, as without the gate.
    assert (await client.get("/v1/queues", headers={"Host": "evil.example"})).status_code in (400, 403, 421)
