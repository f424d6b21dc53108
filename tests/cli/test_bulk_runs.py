"""Bulk operations on runs and jobs from the command line, tags, and `foliot events`."""

from __future__ import annotations

import json

import pytest

from foliot.cli import bulk_runs
from foliot.errors import Unreachable
from foliot.model.ids import new_id
from foliot.sdk.http_protocol import Answer
from foliot.sdk.operations import Operations
from tests.support.cluster import Cluster
from tests.support.terminal import Shell, on_a_terminal

pytestmark = pytest.mark.process


@pytest.fixture
def tag() -> str:
    return f"t{new_id().hex}"


def submit(shell: Shell, tag: str, *options: str) -> str:
    return shell.done("submit", "simulate", "--tag", tag, *options).strip()


def listed(shell: Shell, *options: str) -> list[str]:
    return [run["id"] for run in json.loads(shell.done("runs", *options, "--json"))["items"]]


def test_runs_are_counted_and_cancelled_and_found_by_their_tag(shell: Shell, tag: str) -> None:
    runs = [submit(shell, tag, "--delay", "1h") for _ in range(3)]
    assert listed(shell, "--tag", tag) == runs[::-1]
    assert shell.done("cancel", "--tag", tag, "--dry-run") == "3 runs would be cancelled\n"
    # There is no terminal to ask for a confirmation.
    assert shell.foliot("cancel", "--tag", tag).code == 1
    assert listed(shell, "--tag", tag, "--state", "scheduled") == runs[::-1]
    ended = shell.foliot("cancel", "--tag", tag, "--yes", "--reason", "mistake")
    assert (ended.code, ended.out, ended.err) == (0, "", "3 runs cancelled\n")
    assert listed(shell, "--tag", tag, "--state", "cancelled") == runs[::-1]
    assert "No matching runs." in shell.foliot("cancel", "--tag", tag, "--yes").err
    again = json.loads(shell.done("rerun", "--tag", tag, "--state", "cancelled", "--yes", "--json"))
    assert (again["count"], again["dry_run"]) == (3, False)
    assert tag in shell.done("runs", "show", runs[0])


def test_yes_shows_the_selection(cluster: Cluster, shell: Shell, tag: str) -> None:
    run = submit(shell, tag, "--delay", "1h")
    refused = on_a_terminal(cluster.url, "cancel", "--tag", tag, typed="n\n")
    assert (refused.code, run in refused.out, "Cancel 1 run?" in refused.out) == (1, True, True)
    done = on_a_terminal(cluster.url, "cancel", "--tag", tag, typed="y\n")
    assert (done.code, "1 run cancelled" in done.out, "100%" in done.out) == (0, True, True)


def test_a_request_with_a_lost_answer_is_repeated(shell: Shell, tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        submit(shell, tag, "--delay", "1h")
    really = Operations.cancel_runs
    lost: list[object] = []

    def losing(self: Operations, group: dict[str, object]) -> Answer:
        answer = really(self, group)
        if len(lost) < 2:
            lost.append(group)
            raise Unreachable("gone", is_doubtful=True)
        return answer

    monkeypatch.setattr(bulk_runs, "PAUSES_SECONDS", (0.0, 0.0, 0.0))
    monkeypatch.setattr(Operations, "cancel_runs", losing)
    assert shell.foliot("cancel", "--tag", tag, "--yes").code == 0
    assert len(listed(shell, "--tag", tag, "--state", "cancelled")) == 2


@pytest.mark.parametrize("verb", ["cancel", "rerun"])
def test_a_filter_is_required(shell: Shell, verb: str) -> None:
    for arguments in ([], ["some-id", "--queue", "x"], ["some-id", "--yes"]):
        assert shell.foliot(verb, *arguments).code == 2


def test_recurring_jobs_are_triggered_and_deleted_by_tag(shell: Shell, tag: str) -> None:
    names = [f"{tag}-{letter}" for letter in "ab"]
    for name in names:
        shell.done("submit", "simulate", "--every", "1h", "--name", name, "--tag", tag)
    assert [job["name"] for job in json.loads(shell.done("jobs", "--tag", tag, "--json"))["items"]] == names
    ended = shell.foliot("trigger", "--tag", tag, "--yes")
    assert (ended.out.split(), ended.err) == (names, "triggered: 2\n")
    assert len(listed(shell, "--tag", tag)) == 2
    assert shell.foliot("jobs", "delete", "--jobs", f"{tag}-*", "--yes").err == "deleted: 2\n"
    assert shell.foliot("jobs", "--tag", tag).err == "No matching recurring jobs.\n"
    for arguments in (["trigger"], ["jobs", "delete"], ["trigger", "x", "--tag", "y"]):
        assert shell.foliot(*arguments).code == 2


def test_events_of_one_run_and_recent_endings_are_shown(shell: Shell, tag: str) -> None:
    run = submit(shell, tag, "--notify", "https://example.org/hook")
    lines = [json.loads(line) for line in shell.done("events", run, "-f", "--json").splitlines()]
    assert (lines[-1]["id"], lines[-1]["status"], lines[-1]["tags"]) == (run, "completed", [tag])
    (line,) = shell.done("events", "--tag", tag).splitlines()
    assert line.split()[1:] == ["completed", run, "default", "simulate"]
    assert shell.done("events", "--tag", tag, "--state", "failed") == ""
    assert shell.foliot("events", run).code == 2
    assert "there is no run" in shell.refusal("events", str(new_id()), "-f", code=1)
