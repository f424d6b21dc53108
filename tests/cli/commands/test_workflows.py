"""`foliot workflows` and `foliot signal`, on a real cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foliot.cli.commands.workflows import levels_of
from foliot.sdk.client import Client
from tests.support.terminal import Shell

pytestmark = pytest.mark.process


def submit(shell: Shell, *steps: dict[str, Any], **fields: Any) -> str:
    return shell.done("workflows", "submit", "-", stdin=json.dumps({"steps": steps, **fields}).encode()).strip()


def ended(shell: Shell, workflow_id: str) -> dict[str, Any]:
    with Client(shell.url) as client:
        client.wait_for_workflow(workflow_id, timeout=60)
    found: dict[str, Any] = json.loads(shell.done("workflows", "show", workflow_id, "--json"))
    return found


def columns(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_a_file_is_submitted_awaited_and_shown(shell: Shell, tmp_path: Path) -> None:
    steps = [
        {"key": "last", "command": 'cat "$FOLIOT_UPSTREAM" > "$FOLIOT_RESULT"', "after": ["left", "right"]},
        {"key": "left", "command": "true", "after": ["first"]},
        {"key": "right", "task": "simulate", "after": ["first"]},
        {"key": "first", "command": "echo 12345678901234567890 > $FOLIOT_RESULT"},
    ]
    (tmp_path / "flow.json").write_text(json.dumps({"name": "cli: diamond", "steps": steps}))
    shown = shell.done("workflows", "submit", str(tmp_path / "flow.json"), "--wait")
    head, _, body = shown.partition("\n\n")
    assert "cli: diamond" in head
    assert "4 of 4" in head
    header, *lines = body.splitlines()
    assert header.split() == ["STEP", "STATUS", "TASK", "AFTER", "ATTEMPT", "TOOK", "RUN"]
    assert [columns(line)[0] for line in lines] == ["first", "left", "right", "last"]
    assert [len(line) - len(line.lstrip()) for line in lines] == [0, 2, 2, 4]
    assert {columns(line)[1] for line in lines} == {"completed"}
    found = json.loads(shell.done("workflows", "--name", "cli: diamond", "--json"))["items"]
    assert [(one["name"], one["progress"]["share"]) for one in found] == [("cli: diamond", 1.0)]
    workflow = json.loads(shell.done("workflows", "show", found[0]["id"], "--json"))
    assert workflow["steps"][0]["result"] == {"left": {"exit_code": 0}, "right": workflow["steps"][2]["result"]}


def test_a_failure_is_explained_and_redriven(shell: Shell, tmp_path: Path) -> None:
    flag = tmp_path / "mended"
    steps = [
        {"key": "a", "command": f"test -e {flag}", "retries": 0},
        {"key": "b", "command": "true", "after": ["a"]},
        {"key": "c", "command": "true", "after": ["b"], "rule": "all_done"},
    ]
    body = json.dumps({"name": "cli: mended", "steps": steps}).encode()
    ended = shell.foliot("workflows", "submit", "-", "--wait", stdin=body)
    assert ended.code == 1
    lines = ended.out.partition("\n\n")[2].splitlines()
    assert "ExitCode: exit code 1" in lines[1]
    assert "dependency_failed: a" in lines[2]
    assert "all_done" in lines[3]
    (row,) = [line for line in shell.done("workflows", "--state", "failed").splitlines() if "cli: mended" in line]
    assert "3 of 3 (1 failed, 1 skipped)" in row
    flag.touch()
    workflow_id = columns(row)[0]
    assert shell.foliot("workflows", "redrive", workflow_id, "--wait").code == 0
    assert "nothing to run again" in shell.refusal("workflows", "redrive", workflow_id, code=1)


def test_an_approval_is_given_refused_and_cancelled(shell: Shell) -> None:
    ask = {"key": "ask", "signal": {}}
    given, refused, stopped = (
        submit(shell, ask, {"key": "end", "command": "true", "teardown": True}) for _ in range(3)
    )
    waiting = shell.done("workflows", "show", given)
    assert "waits for a signal" in waiting
    assert f"foliot signal {given} ask" in waiting
    said = shell.foliot("signal", given, "ask", "--payload", '{"by": "ann"}')
    assert (said.code, said.err) == (0, "ask was signalled\n")
    run_id = json.loads(shell.done("workflows", "show", refused, "--json"))["steps"][0]["id"]
    assert shell.foliot("signal", run_id, "--reject", "--message", "not today").err == f"{run_id} was rejected\n"
    assert "has had its signal" in shell.refusal("signal", given, "ask", code=1)
    assert "no step 'aks'" in shell.refusal("signal", given, "aks", code=1)
    assert shell.foliot("workflows", "cancel", stopped, "--reason", "enough", "--force").code == 0
    for workflow_id, status in ((given, "completed"), (refused, "failed"), (stopped, "cancelled")):
        assert ended(shell, workflow_id)["status"] == status
    assert ended(shell, given)["steps"][0]["result"] == {"by": "ann"}
    assert ended(shell, refused)["steps"][0]["error"]["message"].endswith("not today")


def test_items_of_a_map_and_the_parent_of_a_run_are_shown(shell: Shell) -> None:
    workflow_id = submit(
        shell, {"key": "all", "task": "simulate", "map": {"range": {"stop": 3}, "item_name": "seed"}}, name="cli: map"
    )
    shown = ended(shell, workflow_id)
    (step,) = shown["steps"]
    items = json.loads(shell.done("runs", "--parent", step["id"], "--json"))["items"]
    assert len(items) == 3
    assert f"part of  {step['id']} as {items[0]['step']}" in shell.done("runs", "show", items[0]["id"])
    assert "3 of 3" in shell.done("workflows", "show", workflow_id).partition("\n\n")[2]


def test_a_workflow_is_delayed_or_scheduled(shell: Shell) -> None:
    step = {"key": "a", "command": "true"}
    later = submit(shell, step, delay_seconds=3600, name="cli: later")
    assert "scheduled" in shell.done("workflows", "show", later)
    cancelled = shell.foliot("workflows", "cancel", later)
    assert cancelled.err == f"{later} is cancelled\n"
    body = json.dumps({"steps": [step], "cron": "0 0 1 1 *", "name": "cli: yearly"}).encode()
    assert "its first tick is at" in shell.foliot("workflows", "submit", "-", stdin=body).err
    assert "can't be used with a recurring workflow" in shell.refusal(
        "workflows", "submit", "-", "--wait", code=2, stdin=body
    )
    shell.done("jobs", "delete", "cli: yearly")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"[]", "one workflow is expected, not 0 documents"),
        (b"{", "invalid YAML"),
        (b'{"steps": []}', "steps"),
        (b'{"steps": [{"key": "a", "command": "true", "after": ["a"]}]}', "waits for itself"),
    ],
    ids=["list", "no json", "no steps", "circle"],
)
def test_invalid_workflows_are_refused(shell: Shell, content: bytes, why: str) -> None:
    assert why in shell.refusal("workflows", "submit", "-", code=2, stdin=content)


def test_unknown_workflows_are_reported(shell: Shell) -> None:
    assert "No such file" in shell.refusal("workflows", "submit", "/no/such/file", code=2)
    for arguments in (
        ["workflows", "show", "x"],
        ["workflows", "cancel", "x"],
        ["workflows", "redrive", "x"],
    ):
        assert "there is no workflow 'x'" in shell.refusal(*arguments, code=1)
    for arguments in (["signal", "x"], ["signal", "x", "y"]):
        assert "there is no run 'x'" in shell.refusal(*arguments, code=1)
    assert shell.foliot("workflows", "--name", "nobody's").err == "No matching workflows.\n"


def test_steps_are_shown_in_an_order_in_which_they_can_run() -> None:
    deep = {str(number): [str(number + 1)] for number in range(5000)} | {"5000": []}
    levels = levels_of(deep)
    assert list(levels)[:2] == ["5000", "4999"]
    assert levels["0"] == 5000
