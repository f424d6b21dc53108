"""`foliot pause`, `resume` and `trigger`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from tests.support.terminal import Shell

pytestmark = pytest.mark.process

Recurring = Callable[..., str]


def test_a_job_is_paused_and_resumed(shell: Shell, recurring: Recurring) -> None:
    name = recurring("--every", "2h")
    ended = shell.foliot("pause", name, "--reason", "maintenance")
    assert (ended.code, ended.out, ended.err) == (0, "", f"{name} is paused\n")
    assert shell.json("jobs", "show", name)["paused_reason"] == "maintenance"
    ended = shell.foliot("resume", name)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith(f"{name} is active; its next tick is at ")
    assert shell.json("jobs", "show", name)["status"] == "active"


def test_a_pause_has_an_end(shell: Shell, recurring: Recurring) -> None:
    name, until_at = recurring(), datetime.now(UTC) + timedelta(days=2, seconds=30)
    assert shell.foliot("pause", name, "--until", until_at.isoformat()).err.endswith("(in 2 d)\n")
    job = shell.json("pause", name, "--until", until_at.isoformat())
    assert (job["status"], datetime.fromisoformat(job["paused_until"])) == ("paused", until_at)
    assert shell.json("resume", name)["paused_until"] is None


def test_an_invalid_pause_is_refused(shell: Shell, recurring: Recurring) -> None:
    name = recurring()
    assert "until: must be in the future" in shell.refusal("pause", name, "--until", "2020-01-01T00:00:00Z", code=2)
    assert "'--until': '12:00' is not an ISO 8601 time" in shell.refusal("pause", name, "--until", "12:00", code=2)
    assert "reason: " in shell.refusal("pause", name, "--reason", "x" * 1001, code=2)
    assert shell.json("jobs", "show", name)["status"] == "active"


def test_a_triggered_run_can_be_shown(shell: Shell, recurring: Recurring) -> None:
    name = recurring()
    ended = shell.foliot("trigger", name)
    run_id = str(UUID(ended.out.strip()))
    assert ended.err == f"{name} was triggered; see: foliot jobs show {run_id}\n"
    assert shell.json("jobs", "show", run_id)["name"] == name
    assert shell.json("trigger", name)["job_id"] == shell.json("jobs", "show", name)["id"]


def test_a_queue_a_task_and_everything_are_paused_and_resumed(shell: Shell) -> None:
    for arguments, name in (["--queue", "quiet"], "quiet"), (["--task", "resize"], "resize"):
        ended = shell.foliot("pause", *arguments, "--reason", "maintenance")
        assert (ended.code, ended.err) == (0, f"{arguments[0][2:]} {name} is paused\n")
        # Other tests pause jobs of the same server.
        paused = shell.json("pause", *arguments, "--json")["items"]
        assert [item["name"] for item in paused if item["kind"] != "job"] == [name]
        ended = shell.foliot("resume", *arguments)
        assert (ended.code, ended.err) == (0, f"{arguments[0][2:]} {name} is resumed\n")
    for wrong in (["pause"], ["pause", "report", "--queue", "mail"], ["resume", "--queue", "a", "--task", "b"]):
        assert "give one of NAME_OR_ID" in shell.refusal(*wrong, code=2)
    assert "name: letters, digits" in shell.refusal("pause", "--queue", "a b", code=2)


def test_jobs_that_match_a_pattern_are_paused_and_resumed_together(shell: Shell, recurring: Recurring) -> None:
    names = [recurring(name=f"together {letter}") for letter in "ab"]
    recurring(name="apart")
    asked = shell.foliot("pause", "--jobs", "together *", stdin=b"n\n")
    assert asked.code == 1
    assert "Pause 2 jobs?" in asked.err
    assert shell.json("jobs", "show", names[0], "--json")["status"] == "active"
    ended = shell.foliot("pause", "--jobs", "together *", "--yes", "--reason", "maintenance")
    assert (ended.code, ended.out.splitlines(), ended.err) == (0, names, "paused: 2\n")
    assert shell.json("jobs", "show", names[0], "--json")["paused_reason"] == "maintenance"
    assert shell.done("resume", "--jobs", "together *", "--yes").splitlines() == names
    assert shell.json("jobs", "show", "apart", "--json")["status"] == "active"
    assert "--jobs: can be combined only with" in shell.refusal("pause", names[0], "--jobs", "x", code=2)
