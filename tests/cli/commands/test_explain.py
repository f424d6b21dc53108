"""`foliot explain` as people read it."""

from __future__ import annotations

import json

import pytest

from foliot.model.ids import new_id
from tests.support.terminal import Shell

pytestmark = pytest.mark.process


def test_the_first_closed_gate_is_the_answer(shell: Shell) -> None:
    run = json.loads(shell.done("submit", "simulate", "--delay", "1h", "--json"))["id"]
    first, _, header, *gates = shell.done("explain", run).splitlines()
    assert first.startswith("run is scheduled: is not due until ")
    assert header.split() == ["GATE", "WHY"]
    assert [line.split()[:2] for line in gates if line.startswith("closed")] == [["closed", "due"]]
    assert json.loads(shell.done("explain", run, "--json"))["state"] == "scheduled"
    assert shell.done("explain", "default").startswith("queue 'default' is active")


def test_an_unknown_reference_is_reported(shell: Shell) -> None:
    for reference in (str(new_id()), "nothing", ".."):
        assert "there is no" in shell.refusal("explain", reference, code=1)
