"""`foliot alerts`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foliot.cli.commands.alerts import alert_table, alert_text
from foliot.clock import SystemClock
from tests.support.terminal import Shell
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.process, pytest.mark.timeout(PATIENCE_SECONDS * 4)]
RULE = {"condition": {"kind": "heartbeat_silent", "heartbeat": "backup"}, "severity": "critical", "description": "x"}


def test_rules_are_put_listed_shown_and_deleted(shell: Shell) -> None:
    ended = shell.foliot("alerts", "rules", "put", "silence-of-backup", json.dumps(RULE))
    assert (ended.code, ended.err) == (0, "silence-of-backup: version 1\n")
    assert "heartbeat_silent" in shell.done("alerts", "rules")
    shown = shell.done("alerts", "rules", "show", "silence-of-backup")
    assert "every" in shown
    assert "1h" in shown
    (listed,) = json.loads(shell.done("alerts", "rules", "--json"))["items"]
    assert listed["rule"]["severity"] == "critical"
    assert "backup" in shell.done("alerts", "heartbeats")
    wrong = json.dumps({"condition": {"kind": "heartbeat_silent", "heartbeat": "a", "ever": "1h"}})
    assert "condition.ever: there is no such field" in shell.refusal("alerts", "rules", "put", "bad", wrong, code=2)
    assert "a JSON object" in shell.refusal("alerts", "rules", "put", "bad", "7", code=2)
    shell.done("alerts", "rules", "delete", "silence-of-backup")
    assert "no alert rule" in shell.refusal("alerts", "rules", "show", "silence-of-backup", code=1)


def test_a_rule_is_silenced_for_a_while(shell: Shell) -> None:
    shell.done("alerts", "rules", "put", "quiet", json.dumps(RULE))
    made = json.loads(shell.done("alerts", "silence", "quiet", "--for", "2h", "--reason", "it moves", "--json"))
    assert "it moves" in shell.done("alerts", "silences")
    shell.done("alerts", "unsilence", made["id"])
    assert "it moves" not in shell.foliot("alerts", "silences").out
    shell.done("alerts", "silence", "--all", "--until", "2099-01-01T00:00:00Z", "--reason", "maintenance")
    assert "either the name of a rule or --all" in shell.refusal(
        "alerts", "silence", "--for", "1h", "--reason", "x", code=2
    )
    assert "either --for or --until" in shell.refusal("alerts", "silence", "quiet", "--reason", "x", code=2)
    shell.done("alerts", "rules", "delete", "quiet")


def test_an_alert_is_listed_shown_acknowledged_and_resolved(shell: Shell) -> None:
    # A cluster of one scheduler node has fewer than a thousand of them.
    rule = {"condition": {"kind": "few_schedulers", "below": 1000}, "severity": "info"}
    shell.done("alerts", "rules", "put", "nodes", json.dumps(rule))
    listed: list[dict[str, str]] = []
    clock = SystemClock()
    give_up_at = clock.monotonic() + PATIENCE_SECONDS
    while not listed and clock.monotonic() < give_up_at:
        listed = json.loads(shell.done("alerts", "--json", "--rule", "nodes"))["items"]
    alert = listed[0]["id"]
    assert "the rule wants 1000 or more" in shell.done("alerts", "--rule", "nodes")
    shell.done("alerts", "acknowledge", alert, "--note", "known")
    shown = shell.done("alerts", "show", alert)
    assert "acknowledged" in shown
    assert "known" in shown
    shell.done("alerts", "resolve", alert)
    shell.done("alerts", "rules", "delete", "nodes")
    assert "only an open one can be resolved" in shell.refusal("alerts", "resolve", alert, code=1)
    assert "there is no alert" in shell.refusal("alerts", "show", "nonsense", code=1)


def test_texts_of_jobs_can_not_steer_the_terminal() -> None:
    now = SystemClock().now()
    alert: dict[str, Any] = {
        "id": "01900000-0000-7000-8000-000000000001", "severity": "critical", "state": "open", "rule": "failures",
        "subject": "a\x1b[2Jb", "since": now.isoformat(), "summary": "bad \x1b]0;x\x07", "acknowledged_at": None,
        "opened_at": None, "acknowledged_by": None, "note": None, "resolved_at": None, "resolved_by": None,
        "subjects": [], "log_tail": "one\x1b[31mtwo\nthree",
    }  # fmt: skip
    shown = alert_table({"items": [alert]}, now) + alert_text({"alert": alert, "deliveries": []}, now)
    assert "\x1b[2J" not in shown
    assert "\x1b]0" not in shown
    assert "one\\x1b[31mtwo\nthree" in shown
