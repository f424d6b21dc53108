"""`foliot pauses`, `foliot resume --circuit` and `foliot queues set`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from foliot.cli.commands.pauses import pause_table
from foliot.cli.commands.queues import change_limits
from foliot.clock import SystemClock
from foliot.errors import PreconditionFailed
from foliot.sdk.http_protocol import Answer, Document
from foliot.sdk.operations import Operations
from tests.support.terminal import Shell

pytestmark = pytest.mark.process


def test_every_pause_is_listed_with_the_command_that_ends_it(shell: Shell, recurring: Callable[..., str]) -> None:
    job = recurring(name="paused report")
    shell.done("pause", "--queue", "slow-mail", "--reason", "moving")
    shell.done("pause", "--task", "resize")
    shell.done("pause", job, "--until", "2099-01-01T00:00:00Z", "--reason", "holidays")
    shown = shell.done("pauses")
    for command in ("resume --queue slow-mail", "resume --task resize", "resume 'paused report'"):
        assert f"foliot {command}" in shown
    assert "moving" in shown
    found = json.loads(shell.done("pauses", "--json"))
    # Other tests pause jobs of their own.
    assert "paused report" in [one["name"] for one in found["jobs"]]
    for arguments in (["--queue", "slow-mail"], ["--task", "resize"], [job]):
        shell.done("resume", *arguments)
    ended = shell.foliot("pauses")
    assert "slow-mail" not in ended.out
    assert "resize" not in ended.out
    assert "paused report" not in ended.out


def test_an_open_circuit_is_listed_and_closed(shell: Shell) -> None:
    circuit = {"task": "charge", "failures": 5, "open_until": "2099-01-01T00:00:00Z", "probe_id": None}
    shown = pause_table({"pauses": [], "circuits": [circuit], "jobs": []}, SystemClock().now())
    assert "foliot resume --circuit charge" in shown
    assert shell.foliot("resume", "--circuit", "charge").err == "the circuit breaker of charge was not open\n"
    assert json.loads(shell.done("resume", "--circuit", "charge", "--json")) == {"items": []}
    assert "can't be combined" in shell.refusal("resume", "--circuit", "charge", "--queue", "mail", code=2)


def test_limits_of_a_queue_are_set_and_removed(shell: Shell) -> None:
    ended = shell.foliot("queues", "set", "narrow", "--max-running", "3")
    assert (ended.code, ended.err) == (0, "queue narrow: max running 3 (was none), max depth none\n")
    ended = shell.foliot("queues", "set", "narrow", "--max-running", "none", "--max-depth", "50")
    assert ended.err == "queue narrow: max running none (was 3), max depth 50 (was none)\n"
    assert json.loads(shell.done("queues", "set", "narrow", "--max-depth", "none", "--json"))["max_depth"] is None
    assert "give --max-running or --max-depth" in shell.refusal("queues", "set", "narrow", code=2)
    assert "--max-running" in shell.refusal("queues", "set", "narrow", "--max-running", "many", code=2)
    assert "name: letters, digits" in shell.refusal("queues", "set", "a b", "--max-depth", "1", code=2)


def test_a_concurrent_change_of_limits_is_kept() -> None:
    tags: list[str] = []

    class Changing(Operations):
        def get_queue(self, name: str) -> Answer:
            return Answer(b"", Document({"max_running": len(tags)}), etag=f'"{len(tags)}"')

        def change_queue(self, name: str, limits: Any, *, if_match: str = "") -> Answer:
            tags.append(if_match)
            if len(tags) < 3:
                raise PreconditionFailed("changed")
            return Answer(b"", Document(limits))

    before, _ = change_limits(Changing(), "mail", {"max_running": 7})
    assert (tags, before["max_running"]) == (['"0"', '"1"', '"2"'], 2)


def test_paused_jobs_are_listed_page_by_page(shell: Shell, recurring: Callable[..., str]) -> None:
    jobs = [recurring(name=f"pause page {number}") for number in range(3)]
    for job in jobs:
        shell.done("pause", job)
    with Operations(shell.url) as client:
        page = client._answer("GET", "/v1/jobs", query={"paused": 1, "limit": 2})
        assert len(page.document["items"]) == 2
        assert {*jobs} <= {job["name"] for job in client.list_jobs(paused=True).document["items"]}
    for job in jobs:
        shell.done("resume", job)
