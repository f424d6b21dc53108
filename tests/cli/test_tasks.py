"""`foliot tasks`: which built-in tasks are disabled."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.terminal import Shell

pytestmark = pytest.mark.process


@pytest.fixture
def shell(shell: Shell) -> Iterator[Shell]:
    """The server is shared with other tests, none of which uses `wait`."""
    yield shell
    shell.foliot("tasks", "enable", "wait")
    shell.foliot("tasks", "enable", "wait", "--everywhere")


def test_a_task_is_disabled_listed_and_enabled(shell: Shell) -> None:
    assert "No disabled tasks." in shell.foliot("tasks").err
    shown = shell.done("tasks", "disable", "wait", "--reason", "for a while")
    assert "wait" in shown
    assert "this namespace" in shown
    assert "for a while" in shown
    assert shell.done("tasks") == shown
    refused = shell.foliot("submit", "wait")
    assert (refused.code, "'wait' is disabled in the namespace 'default'" in refused.err) == (1, True)
    (item,) = json.loads(shell.done("tasks", "--json"))["items"]
    assert (item["task"], item["everywhere"], item["disabled_by"]) == ("wait", False, "local")
    assert "all namespaces" in shell.done("tasks", "disable", "wait", "--everywhere")
    shell.foliot("tasks", "enable", "wait", "--everywhere")
    assert "No disabled tasks." in shell.foliot("tasks", "enable", "wait").err


def test_a_name_that_is_none_is_answered_with_the_nearest_one(shell: Shell) -> None:
    refused = shell.foliot("tasks", "disable", "wayt")
    assert refused.code != 0
    assert "did you mean 'wait'?" in refused.err
