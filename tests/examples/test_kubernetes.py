"""The example for Kubernetes: its values fit the chart, and its workers the tasks."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import jsonschema
import pytest
import yaml

from tests.support.kubernetes_schemas import KUBERNETES, check_object, helm
from tests.support.processes import ROOT

EXAMPLE = ROOT / "examples" / "kubernetes"
CHART = ROOT / "deploy" / "helm" / "foliot"
VALUES = yaml.safe_load((EXAMPLE / "values.yaml").read_text())


def test_values_follow_the_schema_of_the_chart() -> None:
    # As Helm does, after it has put them on top of the chart's own.
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.validate(defaults | VALUES, json.loads((CHART / "values.schema.json").read_text()))


def test_each_queue_of_the_tasks_has_a_pool() -> None:
    printed = "import tasks; print(*{task.queue for task in tasks.app.tasks.values()})"
    done = subprocess.run([sys.executable, "-c", printed], cwd=EXAMPLE, capture_output=True, text=True, check=True)
    served = {queue for pool in VALUES["workers"].values() for queue in pool["queues"]}
    assert set(done.stdout.split()) == served
    assert {pool["app"] for pool in VALUES["workers"].values()} == {"tasks:app"}


def test_readme_and_dockerfile_name_the_images_of_the_values() -> None:
    readme = (EXAMPLE / "README.md").read_text()
    image = f"{VALUES['image']['repository']}:{VALUES['image']['tag']}"
    assert re.findall(r"docker build -t (\S+)", readme) == [image, VALUES["workers"]["reports"]["image"]]
    assert f"FROM {image}\n" in (EXAMPLE / "Dockerfile").read_text()


@pytest.mark.deploy
@pytest.mark.timeout(1800)
def test_chart_renders_the_pools() -> None:
    done = helm(
        "template", "foliot", str(CHART), "--kube-version", KUBERNETES, "--values", str(EXAMPLE / "values.yaml")
    )
    assert done.returncode == 0, done.stderr
    parts = [part for part in yaml.safe_load_all(done.stdout) if part]
    for part in parts:
        check_object(part)
    found = {part["metadata"]["name"]: part for part in parts if part["kind"] == "Deployment"}
    pod = found["foliot-worker-reports"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == ["worker", "tasks:app", "--queue", "reports=2", "--label", "pool=reports"]
    assert pod["terminationGracePeriodSeconds"] > 600
