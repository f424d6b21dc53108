"""`foliot sources`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from foliot.model.webhook_signature import signature_of
from tests.support.cluster import HOOK_SECRET
from tests.support.terminal import Shell
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.process
HOOK = {"kind": "webhook", "secret": "env:HOOK_SECRET", "task": "simulate", "payload": {"seconds": "{{ message.n }}"}}


@pytest.fixture
def hook(shell: Shell, tmp_path: Path) -> Iterator[str]:
    """The name of a source for signed messages."""
    put(shell, tmp_path, "hook", HOOK)
    yield "hook"
    shell.foliot("sources", "delete", "hook")


def put(shell: Shell, directory: Path, name: str, source: dict[str, Any]) -> None:
    file = directory / "source.json"
    file.write_text(json.dumps(source))
    shell.done("sources", "put", name, str(file))


def deliver(shell: Shell, name: str, body: bytes, message_id: str) -> str:
    """The outcome of a message."""
    timestamp = str(int(time.time()))
    signature = signature_of(HOOK_SECRET, message_id=message_id, timestamp=timestamp, body=body)
    headers = {"webhook-id": message_id, "webhook-timestamp": timestamp, "webhook-signature": signature}
    answer = httpx.post(
        f"{shell.url}/v1/hooks/{name}", content=body, headers=headers | {"content-type": "application/json"}
    )
    return str(answer.json()["outcome"])


def test_a_source_is_put_listed_shown_paused_and_deleted(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text("kind: webhook\nsecret: env:HOOK_SECRET\ntask: simulate\n")
    dry = shell.done("sources", "put", "orders", str(file), "--dry-run")
    assert "create" in dry
    assert "source: webhook -> simulate" in dry
    assert "dry run: nothing was changed" in dry
    assert "orders" not in shell.foliot("sources").out
    assert "1 create" in shell.done("sources", "put", "orders", str(file))
    assert shell.json("sources", "put", "orders", str(file))["items"][0]["action"] == "unchanged"
    file.write_text(file.read_text() + "priority: 7\n")
    assert "priority: default -> 7" in shell.done("sources", "put", "orders", str(file), "--dry-run")
    changed = shell.json("sources", "put", "orders", str(file))["items"][0]
    assert changed["changes"] == {"priority": {"from": None, "to": 7}}
    assert "active" in shell.done("sources")
    assert "is paused" in shell.foliot("sources", "pause", "orders").err
    assert "paused" in shell.done("sources", "show", "orders")
    shown = shell.json("sources", "show", "orders")
    assert (shown["definition"]["priority"], shown["definition"]["paused"]) == (7, True)
    assert shell.json("sources", "resume", "orders")["definition"].get("paused", False) is False
    assert [one["name"] for one in shell.json("sources")["items"]] == ["orders"]
    shell.done("sources", "delete", "orders")
    assert "there is no source 'orders'" in shell.refusal("sources", "show", "orders", code=1)


def test_dead_messages_are_listed_retried_and_discarded(shell: Shell, tmp_path: Path, hook: str) -> None:
    assert deliver(shell, hook, b'{"n": 0}', "fine") == "submitted"
    for number in range(3):
        assert deliver(shell, hook, b'{"other": 1}', f"bad-{number}") == "dead"
    listed = shell.done("sources", "dead", hook)
    assert listed.count('{"other": 1}') == 3
    items = shell.json("sources", "dead", hook)["items"]
    assert [item["message_id"] for item in items] == ["bad-2", "bad-1", "bad-0"]
    assert len(shell.json("sources", "dead", hook, "--limit", "1")["items"]) == 1
    still = shell.foliot("sources", "retry", hook, items[0]["id"])
    assert still.code == 1
    assert "message" in still.err
    # The rules of the source change, and so the messages become jobs.
    put(shell, tmp_path, hook, HOOK | {"payload": {"seconds": 0}})
    (retried,) = shell.json("sources", "retry", hook, items[0]["id"])["items"]
    assert shell.json("runs", "show", retried["run_id"])["task"] == "simulate"
    assert "1 discarded" in shell.foliot("sources", "discard", hook, items[1]["id"]).err
    assert [one["error"] for one in shell.json("sources", "retry", hook, "--all")["items"]] == [None]
    assert "No dead messages." in shell.foliot("sources", "dead", hook).err


def test_a_source_whose_broker_is_away_says_so(shell: Shell, tmp_path: Path) -> None:
    put(shell, tmp_path, "away", {"kind": "redis", "url": "env:ABSENT_BROKER", "topic": "orders", "task": "simulate"})
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while "failing" not in (listed := shell.done("sources")):
        assert time.monotonic() < give_up_at, listed
        time.sleep(0.1)
    assert "Redis" in shell.done("sources", "show", "away")
    shell.done("sources", "delete", "away")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[1]", "must contain one object"),
        ("kind: [", "invalid YAML"),
        ("kind: pigeon\ntask: simulate", "kind"),
        ("kind: kafka\ntask: simulate\nurl: kafka://user:swordfish@host\ntopic: orders", "url"),
        ("kind: kafka\ntask: simulate\nurl: env:ABSENT_BROKER", "topic: kafka needs the name"),
        ("kind: webhook\ntask: simulate", "secret: a webhook needs one"),
        ("kind: webhook\ntask: workflow\nsecret: env:HOOK_SECRET", "messages can't start the task"),
    ],
)
def test_a_file_that_is_no_source_is_refused(shell: Shell, tmp_path: Path, content: str, why: str) -> None:
    file = tmp_path / "source.yaml"
    file.write_text(content)
    refused = shell.refusal("sources", "put", "bad", str(file), code=2)
    assert why in refused
    assert "swordfish" not in refused


def test_mistakes_are_refused(shell: Shell, tmp_path: Path, hook: str) -> None:
    file = tmp_path / "source.yaml"
    file.write_text("{kind: webhook, secret: env:OTHER, task: simulate}")
    refused = shell.foliot("sources", "put", "bad", str(file))
    assert (refused.code, "secret_references" in refused.out) == (1, True)
    assert "No such file" in shell.refusal("sources", "put", "bad", str(tmp_path / "none.yaml"), code=2)
    assert "give either ids of dead messages or --all" in shell.refusal("sources", "retry", hook, code=2)
    assert "give either ids" in shell.refusal("sources", "discard", hook, "0", "--all", code=2)
    assert "there is no dead message" in shell.refusal("sources", "discard", hook, "nonsense", code=1)
    assert "there is no source" in shell.refusal("sources", "pause", "nobody", code=1)
