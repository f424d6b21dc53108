"""Helm, and the schemas by which a Kubernetes API server checks objects: its own, KEDA's and Prometheus's."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from jsonschema.protocols import Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tests.support.go_modules import built_program, module_directory
from tests.support.kept import one_at_a_time
from tests.support.packages import pip, without_paths

KUBERNETES = "1.31.0"
HELM = "helm.sh/helm/v3/cmd/helm@v3.14.4"
# A Python package with the API's schemas of many versions; only its files are used.
SCHEMAS = "kubernetes-validate==1.37.0"
# Where the definition of each kind of another project is: module, directory and file.
CUSTOM = {
    "ScaledObject": ("github.com/kedacore/keda/v2@v2.16.1", "config/crd/bases/keda.sh_scaledobjects.yaml"),
    "TriggerAuthentication": (
        "github.com/kedacore/keda/v2@v2.16.1", "config/crd/bases/keda.sh_triggerauthentications.yaml",
    ),
    "ServiceMonitor": (
        "github.com/prometheus-operator/prometheus-operator@v0.79.2",
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
    ),
}  # fmt: skip


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("helm") or str(built_program(HELM, "helm"))
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def check_object(found: Mapping[str, Any]) -> None:
    """Raises `jsonschema.ValidationError` for an object with a field that is unknown or of the wrong type."""
    _validator(found["apiVersion"], found["kind"]).validate(found)


@functools.cache
def _validator(version: str, kind: str) -> Validator:
    if kind in CUSTOM:
        return jsonschema.Draft202012Validator(_custom_schema(version, *CUSTOM[kind]))
    group, _, number = version.rpartition("/")
    name = "-".join(part for part in (kind.lower(), group.partition(".")[0], number) if part)
    read = _schemas()
    definitions: Resource[Any] = Resource.from_contents(read("_definitions"), default_specification=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("/api/_definitions.json", definitions)
    return jsonschema.Draft202012Validator(read(name), registry=registry)


def _custom_schema(version: str, module: str, path: str) -> dict[str, Any]:
    definition = yaml.safe_load((module_directory(module) / path).read_text())
    number = version.rpartition("/")[2]
    (schema,) = [one["schema"]["openAPIV3Schema"] for one in definition["spec"]["versions"] if one["name"] == number]
    strict: dict[str, Any] = _strict(schema)
    return strict


def _strict(schema: Any) -> Any:
    """Without unknown fields, which `kubectl apply` refuses too."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(value) for key, value in schema.items()}
    is_open = "additionalProperties" in made or made.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(made.get("properties"), dict) and made.get("type") == "object" and not is_open:
        made["additionalProperties"] = False
    return made


@functools.cache
def _schemas() -> Callable[[str], dict[str, Any]]:
    archive = zipfile.ZipFile(_wheel())

    def read(name: str) -> dict[str, Any]:
        path = f"kubernetes_validate/kubernetes-json-schema/v{KUBERNETES}-local-strict/{name}.json"
        schema: dict[str, Any] = json.loads(archive.read(path))
        return schema

    return read


def _wheel() -> Path:
    with one_at_a_time(SCHEMAS.replace("==", "-")) as directory:
        if not list(directory.glob("*.whl")):
            command = [*pip(), "download", "--quiet", "--no-deps", "--dest", str(directory), SCHEMAS]
            done = subprocess.run(command, env=without_paths(), capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"the schemas of Kubernetes can't be had: {done.stderr.strip().splitlines()[-1]}")
        (wheel,) = directory.glob("*.whl")
    return wheel
