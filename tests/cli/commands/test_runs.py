"""Commands about runs: `runs`, `logs`, `rerun`, `dead`, `workers`, `queues`."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import time
from typing import Any

import pytest

from foliot.model.ids import new_id
from foliot.sdk.client import PATIENCE_SECONDS
from tests.support.cluster import Cluster
from tests.support.terminal import Shell
from tests.support.waiting import until

pytestmark = pytest.mark.process

numbers = itertools.count(1)


def run_of(shell: Shell, command: str, *arguments: str) -> str:
    """The id of an ended run."""
    ended = shell.foliot("submit", "--command", command, "--wait", "--json", *arguments)
    return str(json.loads(ended.out)["id"])


def fresh() -> str:
    return f"thing {next(numbers)}"


def ended_replay(shell: Shell, replay: str) -> dict[str, Any]:
    async def ended() -> dict[str, Any] | None:
        found: dict[str, Any] = shell.json("dead", "replays", replay)
        return found if found["state"] in ("done", "stopped") else None

    return asyncio.run(until(ended)) or {}


def failed(shell: Shell, name: str) -> str:
    return run_of(shell, "echo oops; exit 3", "--name", name, "--retries", "0")


def test_runs_are_listed_with_filters(shell: Shell) -> None:
    name = fresh()
    good, bad = run_of(shell, "echo hi", "--name", name), failed(shell, name)
    assert [item["id"] for item in shell.json("runs", "--text", name)["items"]] == [bad, good]
    assert [item["id"] for item in shell.json("runs", "--text", name, "--limit", "1")["items"]] == [bad]
    assert [item["id"] for item in shell.json("runs", "--text", name, "--state", "completed")["items"]] == [good]
    shown = shell.done(
        "runs", "--text", name, "--state", "failed", "--task", "shell", "--queue", "default", "--since", "1h"
    )
    assert bad in shown
    assert "ExitCode: exit code 3" in shown
    assert good not in shown
    assert "No matching runs." in shell.foliot("runs", "--text", fresh()).err
    assert "state" in shell.refusal("runs", "--state", "faild", code=2)
    assert "since" in shell.refusal("runs", "--since", "soon", code=2)


def test_a_run_is_shown_with_its_attempts_and_rerun(shell: Shell) -> None:
    bad = failed(shell, fresh())
    new = shell.done("rerun", bad).strip()
    shown = shell.done("runs", "show", new)
    assert f"rerun of  {bad}" in shown
    assert f"rerun as  {new}" in shell.done("runs", "show", bad)
    assert "ExitCode: exit code 3" in shell.done("runs", "show", bad).splitlines()[-1]
    assert shell.json("runs", "show", bad)["rerun_as"] == new
    other = shell.json("rerun", bad, "--payload", '{"command": "echo other"}')
    assert other["payload"] == {"command": "echo other"}
    assert shell.foliot("logs", "-f", other["id"]).out == "other\n"
    waiting = shell.json("submit", "simulate", "--delay", "1h")["id"]
    assert "only a run that has ended" in shell.refusal("rerun", waiting, code=1)
    for command in (["runs", "show"], ["rerun"], ["logs"], ["logs", "-f"]):
        assert "there is no run" in shell.refusal(*command, str(new_id()), code=1)
        assert "there is no run" in shell.refusal(*command, "..", code=1)


def test_output_of_an_ended_run_is_shown(shell: Shell) -> None:
    run_id = run_of(shell, r"printf 'a\tb\033[31m\n'")
    assert shell.done("logs", run_id) == shell.done("logs", run_id, "--attempt", "1") == "a\tb\\x1b[31m\n"
    assert "no attempt 2" in shell.refusal("logs", run_id, "--attempt", "2", code=1)
    bad = failed(shell, fresh())
    ended = shell.foliot("logs", "--follow", bad)
    assert (ended.code, ended.out) == (1, "oops\n")
    assert "is failed" in ended.err


def test_output_is_followed_live(shell: Shell, cluster: Cluster, tmp_path: Any) -> None:
    gate = tmp_path / "gate"
    run_id = shell.json("submit", "--command", f"echo first; while [ ! -e {gate} ]; do sleep 0.05; done; echo second")[
        "id"
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "foliot", "logs", "-f", run_id],
        env={"FOLIOT_URL": cluster.url, "PATH": ""},
        stdout=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "first\n"
        assert following.poll() is None
        gate.touch()
        assert following.stdout.read() == "second\n"
    assert following.returncode == 0


def test_dead_letters_are_grouped_listed_and_replayed_once(shell: Shell) -> None:
    name = fresh()
    first, second = failed(shell, name), failed(shell, name)
    listed = [item for item in shell.json("dead", "list", "--since", "1h")["items"] if item["id"] in (first, second)]
    assert [item["id"] for item in listed] == [second, first]
    group = listed[0]["fingerprint"]
    assert group in shell.done("dead")
    assert [one["kind"] for one in shell.json("dead", "--task", "shell")["items"] if one["fingerprint"] == group] == [
        "ExitCode"
    ]
    assert first in shell.done("dead", "list", "--group", group)
    assert "would be replayed" in shell.done("dead", "replay", "--group", group, "--dry-run")
    done = shell.foliot("dead", "replay", first, "--rate", "100")
    assert (done.code, len(done.out.split())) == (0, 1)
    again = shell.foliot("dead", "replay", first)
    assert (again.out, "0 dead letters replayed; 1 skipped" in again.err) == ("", True)
    assert first not in shell.done("dead", "list", "--group", group, "--limit", "1000")
    assert done.out.strip() in shell.done("dead", "list", "--group", group, "--replayed", "--limit", "1000")
    by_filter = shell.json("dead", "replay", "--group", group, "--payload", '{"command": "true"}')
    assert second in [item["id"] for item in by_filter["items"]]
    assert first not in [item["id"] for item in by_filter["items"]]
    for wrong in ([], [first, "--task", "shell"], ["--all", "--task", "shell"]):
        assert "give RUN_IDs, or filters" in shell.refusal("dead", "replay", *wrong, code=2)
    assert "ids[0]" in shell.refusal("dead", "replay", "x", code=2)


def test_one_dead_letter_is_replayed_first_and_decides_about_the_others(shell: Shell) -> None:
    name = fresh()
    runs = [failed(shell, name) for _ in range(3)]
    group = next(item for item in shell.json("dead", "list")["items"] if item["id"] == runs[0])["fingerprint"]
    # It fails as before, so the others stay.
    begun = shell.foliot("dead", "replay", *runs[::-1], "--canary")
    canary, replay = begun.out.strip(), begun.err.strip().rpartition(" ")[2]
    assert (begun.code, canary in runs, "once it has succeeded" in begun.err) == (0, False, True)
    stopped = ended_replay(shell, replay)
    assert [stopped[name] for name in ("state", "canary_id", "canary_of", "started")] == ["stopped", canary, runs[2], 1]
    assert "its first run failed" in shell.done("dead", "replays", replay)
    assert replay[:8] in shell.done("dead", "replays", "--group", group)
    assert runs[0] in shell.done("dead", "list", "--group", group, "--limit", "1000")
    # With a repaired payload it succeeds, and they follow.
    repaired = ("--payload", '{"command": "true"}')
    answer = shell.json("dead", "replay", runs[1], runs[0], "--canary", *repaired)
    assert [item["id"] for item in answer["items"]] == [runs[1]]
    done = ended_replay(shell, answer["replay_id"])
    assert (done["state"], done["total"], done["started"]) == ("done", 2, 2)
    assert "2 of 2" in shell.done("dead", "replays", answer["replay_id"])
    assert "done: 2 of 2 replayed" in shell.foliot("dead", "stop", answer["replay_id"]).err
    assert "not both" in shell.refusal("dead", "replays", replay, "--group", group, code=2)


def test_workers_and_queues_are_listed(shell: Shell) -> None:
    (worker,) = shell.json("workers")["items"]
    shown = shell.done("workers")
    assert (worker["id"] in shown, "healthy" in shown) == (True, True)
    assert "default" in [queue["name"] for queue in shell.json("queues")["items"]]
    assert shell.done("queues").splitlines()[0].startswith("QUEUE")
    assert "no live worker" in shell.refusal("workers", "drain", str(new_id()), code=1)


def test_a_missing_server_is_reported_at_once(shell: Shell, closed_port: int) -> None:
    began = time.monotonic()
    for command in (["runs"], ["logs", "-f", str(new_id())], ["dead"], ["workers"], ["queues"]):
        assert "no Foliot answers" in shell.refusal(*command, code=1, url=f"http://127.0.0.1:{closed_port}")
    # Less than the wait for a server that has answered before.
    assert time.monotonic() - began < PATIENCE_SECONDS
