"""The text of one alert, as channels show it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from foliot.model.alert_rule import Severity

AlertEvent = Literal["opened", "repeated", "acknowledged", "resolved", "test"]


@dataclass(frozen=True, slots=True)
class AlertMessage:
    """All that a channel may show. Plain text."""

    alert_id: str
    """The same for all messages about one alert, so that a far end can recognize them."""
    event: AlertEvent
    severity: Severity
    namespace: str
    rule: str
    """The name of the rule."""
    title: str
    """One line."""
    summary: str
    """One sentence: what happened, and why."""
    since: datetime
    resolved_at: datetime | None
    count: int
    """How many things the alert is about."""
    subjects: tuple[str, ...]
    """Some of them: names of jobs or queues, or ids of runs."""
    log_tail: str
    """The last lines of the output, or empty."""
    link: str
    """The URL of the alert's page in the web UI. Empty if no public URL is configured."""
