"""Every command accepts the beginning of an id, as long as only one id begins with it."""

from __future__ import annotations

import json

import pytest

from foliot.model.ids import new_id
from tests.support.terminal import Shell

pytestmark = pytest.mark.process


def test_the_beginning_of_an_id_is_accepted(shell: Shell) -> None:
    run = json.loads(shell.done("submit", "simulate", "--delay", "1h", "--json"))["id"]
    short = run[:18]
    assert json.loads(shell.done("runs", "show", short, "--json"))["id"] == run
    assert json.loads(shell.done("jobs", "show", short, "--json"))["id"] == run
    assert shell.done("explain", short).startswith("run is scheduled")
    assert shell.done("logs", short) == ""
    assert json.loads(shell.done("cancel", short, "--json"))["status"] == "cancelled"
    new = shell.done("rerun", short).strip()
    assert json.loads(shell.done("runs", "show", new[:18], "--json"))["rerun_of"] == run


def test_a_workflow_and_a_job_have_short_ids_too(shell: Shell) -> None:
    flow = json.dumps({"name": "short", "steps": [{"key": "a", "task": "wait", "signal": {}}]}).encode()
    workflow = shell.done("workflows", "submit", "-", stdin=flow).strip()
    assert json.loads(shell.done("workflows", "show", workflow[:20], "--json"))["id"] == workflow
    assert len(json.loads(shell.done("runs", "--parent", workflow[:20], "--json"))["items"]) == 1
    shell.done("workflows", "cancel", workflow[:20])
    job = json.loads(shell.done("submit", "simulate", "--name", "short id", "--cron", "0 0 1 1 *", "--json"))["id"]
    assert json.loads(shell.done("jobs", "next", job[:20], "--json"))["items"]
    shell.done("jobs", "delete", job[:20])


def test_an_ambiguous_beginning_lists_the_ids(shell: Shell) -> None:
    runs = [shell.done("submit", "simulate", "--delay", "1h", "--name", f"twin {n}").strip() for n in (1, 2)]
    common = next(runs[0][:size] for size in range(36, 0, -1) if runs[1].startswith(runs[0][:size]))
    if len(common) < 8:
        pytest.skip("the ids have too little in common")
    ended = shell.foliot("runs", "show", common)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"foliot: {common}: several ids begin so")
    assert all(run in ended.err for run in runs) or "more" in ended.err


def test_an_unknown_id_is_reported(shell: Shell) -> None:
    unknown = str(new_id())[:13]
    assert "there is no run whose id begins with" in shell.refusal("runs", "show", unknown, code=1)
    assert "the first 8 digits" in shell.refusal("logs", "01a1f", code=1)
    assert "there is no run 'mail'" in shell.refusal("logs", "mail", code=1)
