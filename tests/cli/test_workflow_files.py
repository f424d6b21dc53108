"""Workflows in YAML: the request that is sent, and the places of errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foliot.cli.job_files import InvalidFiles
from foliot.cli.workflow_files import read_workflow
from tests.support.terminal import Shell

FLOW = """\
# The nightly load
kind: workflow
name: from yaml
steps:
  - key: extract
    command: "true"
  - key: load
    task: simulate
    after: [extract]
"""


def test_a_yaml_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(FLOW)
    found = read_workflow(str(path))
    assert (found["name"], [step["key"] for step in found["steps"]]) == ("from yaml", ["extract", "load"])


def test_json_is_sent_as_written(tmp_path: Path) -> None:
    path = tmp_path / "flow.json"
    path.write_text('{"steps": [{"key": "a", "task": "t", "payload": {"n": 1.50}}]}')
    assert b"1.50" in bytes(read_workflow(str(path))["steps"])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("after: [extract]", "after: [extrakt]"), ":9: steps[1].after: step 'load' waits for 'extrakt'"),
        (("task: simulate", "taks: simulate"), ":8: steps[1].taks"),
        (("kind: workflow", "kind: job"), ":2: kind: must be workflow, not 'job'"),
        (("  - key: load", "  - key: [load"), "invalid YAML"),
        (("name: from yaml", "name: from yaml\nname: again"), ":4: name: field is repeated"),
    ],
    ids=["unknown step", "unknown field", "kind", "syntax", "repeated"],
)
def test_errors_name_the_line(tmp_path: Path, change: tuple[str, str], error: str) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(FLOW.replace(*change))
    with pytest.raises(InvalidFiles) as refused:
        read_workflow(str(path))
    assert error in str(refused.value)


@pytest.mark.process
def test_a_dry_run_shows_the_steps_and_stores_nothing(shell: Shell) -> None:
    shown = shell.done("workflows", "submit", "-", "--dry-run", stdin=FLOW.encode())
    assert [line.split()[0] for line in shown.splitlines()] == ["STEP", "extract", "load"]
    assert json.loads(shell.done("workflows", "--name", "from yaml", "--json"))["items"] == []
    assert shell.done("workflows", "submit", "-", "--wait", stdin=FLOW.encode()).count("completed") == 3
    broken = FLOW.replace("task: simulate", "task: nobody_knows_it").encode()
    assert "steps[1].task" in shell.refusal("workflows", "submit", "-", "--dry-run", code=2, stdin=broken)
