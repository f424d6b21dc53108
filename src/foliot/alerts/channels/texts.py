"""The texts of a message: safe defaults, or the templates of the channel.

A title is one line. Everything is bounded, since far ends refuse or cut long messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from foliot.alerts.message import AlertMessage
from foliot.model.alert_channel import AlertChannel
from foliot.model.templates import Placeholder, TemplateError, Unrenderable, render

TITLE_MAX = 200
SUMMARY_MAX = 1500
LOG_MAX = 2500
BODY_MAX = 10_000
SUBJECTS_MAX = 20
SUBJECT_MAX = 200
STATUS = {
    "opened": "",
    "repeated": "Still: ",
    "acknowledged": "Acknowledged: ",
    "resolved": "Resolved: ",
    "test": "Test: ",
}


@dataclass(frozen=True, slots=True)
class Texts:
    title: str
    summary: str
    facts: tuple[tuple[str, str], ...]
    """Names and values. Empty if the channel has a `body` of its own, which is then the summary."""
    log: str
    link: str
    """An HTTP URL, or empty."""

    @property
    def body(self) -> str:
        """Everything but the title, as plain text."""
        parts = [self.summary, "\n".join(f"{name}: {value}" for name, value in self.facts)]
        parts += [f"Last lines of the log:\n{self.log}" if self.log else "", self.link if self.facts else ""]
        return "\n\n".join(part for part in parts if part)


def texts_of(message: AlertMessage, channel: AlertChannel) -> Texts:
    title = _default_title(message) if channel.title is None else _rendered(channel.title, message)
    title = cut(" ".join(title.split()), TITLE_MAX) or message.rule
    link = message.link if urlsplit(message.link).scheme in ("http", "https") else ""
    if channel.body is not None:
        return Texts(title, cut(_rendered(channel.body, message), BODY_MAX), (), "", link)
    return Texts(
        title,
        cut(message.summary, SUMMARY_MAX),
        tuple(_facts(message)),
        cut_front(message.log_tail.strip("\n"), LOG_MAX),
        link,
    )


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def cut_front(text: str, most: int) -> str:
    """Keeps the end of a log, where the error is."""
    return text if len(text) <= most else f"…{text[len(text) - most + 1 :]}"


def _default_title(message: AlertMessage) -> str:
    return f"[{message.severity}] {STATUS[message.event]}{message.title}"


def _facts(message: AlertMessage) -> list[tuple[str, str]]:
    facts = [("Since", _instant(message.since))]
    if message.resolved_at is not None:
        facts.append(("Resolved", _instant(message.resolved_at)))
    facts += [("Rule", message.rule), ("Namespace", message.namespace)]
    if message.subjects:
        facts.append(("About", _subjects(message)))
    return facts


def _subjects(message: AlertMessage) -> str:
    named = [cut(" ".join(one.split()), SUBJECT_MAX) for one in message.subjects[:SUBJECTS_MAX]]
    more = max(message.count, len(message.subjects)) - len(named)
    return cut(", ".join(named), 900) + (f" and {more} more" if more > 0 else "")


def _instant(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S %Z").strip()


def _rendered(template: str, message: AlertMessage) -> str:
    """A template that can't be rendered must not lose the alert: the title and the summary go out instead."""
    try:
        return render(template, _values(message), _inserted)
    except (TemplateError, Unrenderable) as error:
        return f"{message.title}\n\n{message.summary}\n\n(The template of the channel failed: {error})"


def _inserted(_: Placeholder, value: str) -> str:
    return value


def _values(message: AlertMessage) -> dict[str, Any]:
    return {
        "title": cut(message.title, TITLE_MAX),
        "summary": cut(message.summary, SUMMARY_MAX),
        "event": message.event,
        "severity": message.severity,
        "namespace": message.namespace,
        "rule": message.rule,
        "since": message.since,
        "resolved_at": message.resolved_at,
        "count": message.count,
        "subjects": _subjects(message),
        "log_tail": cut_front(message.log_tail, LOG_MAX),
        "link": message.link,
        "alert_id": message.alert_id,
    }
