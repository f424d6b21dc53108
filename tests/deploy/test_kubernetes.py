"""The Helm chart, and the plain manifests that are rendered from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import click
import jsonschema
import pytest
import yaml

from foliot.cli.main import cli
from foliot.config import Config, setting_names
from tests.support.kubernetes_schemas import KUBERNETES, check_object, helm
from tests.support.processes import ROOT

# The first time, they build Helm.
pytestmark = [pytest.mark.deploy, pytest.mark.timeout(1800)]

CHART = ROOT / "deploy" / "helm" / "foliot"
RENDERED = ROOT / "deploy" / "kubernetes" / "foliot.yaml"
EVERYTHING = (
    "workers.default.autoscaling.enabled=true", "serviceMonitor.enabled=true", "ingress.enabled=true",
    "server.tlsSecret=certificate", "database.directKey=direct", "settings.FOLIOT_SLOTS=8",
    "workers.mail.app=shop:app", "workers.mail.queues.mail=20",
)  # fmt: skip


def render(*settings: str) -> str:
    given = [f"{'--set-string' if 'FOLIOT' in one else '--set'}={one}" for one in settings]
    done = helm("template", "foliot", str(CHART), "--kube-version", KUBERNETES, *given)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(text: str) -> list[dict[str, Any]]:
    return [part for part in yaml.safe_load_all(text) if part]


def pods(text: str) -> Iterator[dict[str, Any]]:
    for part in objects(text):
        if part["kind"] in {"Deployment", "Job"}:
            yield part["spec"]["template"]["spec"]


def test_plain_manifests_are_up_to_date() -> None:
    assert RENDERED.read_text().partition("---\n")[2] == render().partition("---\n")[2], "run `make manifests`"


@pytest.mark.parametrize("settings", [(), EVERYTHING])
def test_every_object_follows_the_schema_of_its_kind(settings: tuple[str, ...]) -> None:
    for part in objects(render(*settings)):
        check_object(part)


def test_objects_with_unknown_fields_are_noticed() -> None:
    for part in objects(render(*EVERYTHING)):
        with pytest.raises(jsonschema.ValidationError):
            check_object({**part, "spec": {**part["spec"], "nonsense": 1}})


def test_chart_passes_the_linter() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


def test_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert [chart["version"], chart["appVersion"]] == [version[0], version[0]]


def test_chart_refuses_unknown_values_and_secrets_as_settings() -> None:
    for wrong in ("settings.bad=1", "settings.FOLIOT_DATABASE_URL=postgresql://a", "wokers.a.app=b"):
        assert helm("template", "foliot", str(CHART), f"--set-string={wrong}").returncode != 0


def test_chart_renders_everything_that_can_be_enabled() -> None:
    kinds = [part["kind"] for part in objects(render(*EVERYTHING))]
    assert sorted(set(kinds)) == [
        "Deployment", "Ingress", "Job", "NetworkPolicy", "PodDisruptionBudget", "ScaledObject", "Service",
        "ServiceMonitor", "TriggerAuthentication",
    ]  # fmt: skip
    assert kinds.count("Deployment") == 4
    assert kinds.count("PodDisruptionBudget") == 4


def test_an_autoscaled_pool_asks_the_server_about_each_of_its_queues() -> None:
    values = ("workers.default.autoscaling.enabled=true", "workers.default.queues.mail=3")
    found = {part["kind"]: part for part in objects(render(*values))}
    assert found["TriggerAuthentication"]["spec"] == {
        "secretTargetRef": [{"parameter": "token", "name": "foliot-scaling", "key": "token"}]
    }
    scaled = found["ScaledObject"]["spec"]
    assert scaled["scaleTargetRef"]["name"] == "foliot-worker-default"
    told = {trigger["metadata"]["url"]: trigger for trigger in scaled["triggers"]}
    address = "http://foliot-server.default.svc:80/v1/scaling?queue="
    assert {url.removeprefix(address): one["metadata"]["targetValue"] for url, one in told.items()} == {
        "default": "32",
        "mail": "3",
    }
    for trigger in told.values():
        assert trigger["metadata"]["valueLocation"] == "slots_wanted"
        assert trigger["authenticationRef"]["name"] == found["TriggerAuthentication"]["metadata"]["name"]


@pytest.mark.parametrize("settings", [None, EVERYTHING])
def test_containers_start_commands_that_exist_with_settings_that_exist(settings: tuple[str, ...] | None) -> None:
    text = RENDERED.read_text() if settings is None else render(*settings)
    known = {f"FOLIOT_{name.upper()}" for name in setting_names()}
    for pod in pods(text):
        [container] = pod["containers"]
        command = cli.get_command(click.Context(cli), container["args"][0])
        assert command is not None
        # Parses the arguments, and runs nothing.
        command.make_context(container["args"][0], list(container["args"][1:]))
        names = {variable["name"] for variable in container["env"]}
        assert names <= known
        assert "FOLIOT_DATABASE_URL_FILE" in names


@pytest.mark.parametrize("settings", [None, EVERYTHING])
def test_pods_have_few_rights_and_enough_time_to_stop(settings: tuple[str, ...] | None) -> None:
    text = RENDERED.read_text() if settings is None else render(*settings)
    found = list(pods(text))
    assert len(found) >= 4
    for pod in found:
        [container] = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"].get("limits", {}) or settings is not None
        if container["args"][0] == "worker":
            assert pod["terminationGracePeriodSeconds"] > Config().grace_seconds
    # Secrets are referred to by their names only.
    assert "postgresql://" not in text


def test_selectors_match_their_pods() -> None:
    parts = objects(RENDERED.read_text())
    deployments = [part for part in parts if part["kind"] == "Deployment"]
    labels = [part["spec"]["template"]["metadata"]["labels"] for part in deployments]
    for part in parts:
        selector = part["spec"].get("selector") or part["spec"].get("podSelector")
        if selector and part["kind"] != "Job":
            wanted = selector.get("matchLabels", selector)
            assert any(wanted.items() <= one.items() for one in labels), part["metadata"]["name"]


def test_values_and_their_schema_name_the_same_keys() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(values) == set(schema["properties"]) - {"global"}
    assert set(values["workers"]["default"]) == set(
        schema["properties"]["workers"]["additionalProperties"]["properties"]
    )
