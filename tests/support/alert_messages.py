"""A message of an alert, as the tests of channels send it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from foliot.alerts.message import AlertMessage

SINCE = datetime(2026, 3, 1, 11, 55, tzinfo=UTC)
MESSAGE = AlertMessage(
    alert_id="0195511a-0000-7000-8000-000000000007",
    event="opened",
    severity="critical",
    namespace="shop",
    rule="nightly-failed",
    title="Job nightly failed",
    summary="The job nightly failed for good at its third attempt, with ExitCode: exit code 1.",
    since=SINCE,
    resolved_at=None,
    count=3,
    subjects=("nightly", "report"),
    log_tail="line one\npg_dump: error: connection refused\n",
    link="https://foliot.example.org/ui/alerts/7",
)
RESOLVED = replace(MESSAGE, event="resolved", resolved_at=datetime(2026, 3, 1, 11, 59, tzinfo=UTC))
HOSTILE = replace(
    MESSAGE,
    title="a\r\nBcc: eve@example.org <!channel> @everyone **x**",
    summary="<script>alert(1)</script> @everyone <@U1> [click](https://evil.example) " + "x" * 9000,
    subjects=tuple(f"job-{number}\n```" for number in range(500)),
    count=70_000,
    log_tail="```\n@everyone\x1b[31m\n" + "y" * 90_000 + "\nthe last line",
    link="javascript:alert(1)",
)


def message(**changes: Any) -> AlertMessage:
    return replace(MESSAGE, **changes)
