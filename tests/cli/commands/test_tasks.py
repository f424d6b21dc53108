"""`foliot tasks`: the tasks that jobs may name, and disabled built-in tasks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.support.terminal import Shell

pytestmark = pytest.mark.process


@pytest.fixture
def shell(shell: Shell) -> Iterator[Shell]:
    """Disables `wait`, because no other test on the shared server uses it."""
    yield shell
    shell.foliot("tasks", "enable", "wait")
    shell.foliot("tasks", "enable", "wait", "--everywhere")


def test_a_task_is_disabled_listed_and_enabled(shell: Shell) -> None:
    assert "No disabled tasks." in shell.foliot("tasks", "--disabled").err
    shown = shell.done("tasks", "disable", "wait", "--reason", "for a while")
    assert "wait" in shown
    assert "this namespace" in shown
    assert "for a while" in shown
    assert shell.done("tasks", "--disabled") == shown
    assert shell.done("tasks").endswith(f"\n\n{shown}")
    refused = shell.foliot("submit", "wait")
    assert (refused.code, "'wait' is disabled in the namespace 'default'" in refused.err) == (1, True)
    (item,) = json.loads(shell.done("tasks", "--disabled", "--json"))["items"]
    assert (item["task"], item["everywhere"], item["disabled_by"]) == ("wait", False, "local")
    assert "all namespaces" in shell.done("tasks", "disable", "wait", "--everywhere")
    shell.foliot("tasks", "enable", "wait", "--everywhere")
    assert "No disabled tasks." in shell.foliot("tasks", "enable", "wait").err


def test_an_unknown_task_gets_a_suggestion(shell: Shell) -> None:
    refused = shell.foliot("tasks", "disable", "wayt")
    assert refused.code != 0
    assert "did you mean 'wait'?" in refused.err


def test_tasks_are_listed_and_shown_with_their_arguments(shell: Shell) -> None:
    listed = shell.done("tasks")
    assert re.search(r"^simulate +default +[1-9]\d* +execution_time_ms\?, fail_rate\? ", listed, re.MULTILINE)
    shown = shell.done("tasks", "show", "shell")
    assert re.search(r"^command +string \| null +null", shown, re.MULTILINE), shown
    assert json.loads(shell.done("tasks", "show", "http", "--json"))["schema"]["required"] == ["url"]
    unknown = shell.foliot("tasks", "show", "nothing")
    assert (unknown.code, "there is no task 'nothing'" in unknown.err) == (1, True)
