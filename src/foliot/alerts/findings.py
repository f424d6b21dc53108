"""The result of a look at a rule: the subjects for which its condition holds, and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from foliot.model.alert_rule import Each, Scope
from foliot.model.namespace import Namespace, bare
from foliot.store.alert_endings import Labels

SUBJECTS_MAX = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """The condition of a rule holds for a subject."""

    since: datetime
    summary: str
    number: int = 1
    subjects: tuple[str, ...] = ()
    log_tail: str = ""
    last_at: datetime | None = None
    """If given, the finding is about things that happened, of which this is the last: `number` adds to those before."""
    page: str = ""
    """The path of a page of the web UI."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The subjects for which a rule's condition holds."""

    findings: Mapping[str, Finding] = field(default_factory=dict)
    over: frozenset[str] | None = None
    """The subjects for which it no longer holds. None: all that have no finding."""

    def is_over(self, subject: str) -> bool:
        return subject not in self.findings if self.over is None else subject in self.over


def matches(scope: Scope, namespace: Namespace, labels: Labels) -> bool:
    if not namespace.owns(labels.queue):
        return False
    if scope.tag is not None and not any(fits(scope.tag, tag) for tag in labels.tags):
        return False
    pairs = ((scope.job, labels.job), (scope.task, labels.task), (scope.queue, labels.queue))
    return all(pattern is None or (name is not None and fits(pattern, bare(name))) for pattern, name in pairs)


def fits(pattern: str | None, name: str) -> bool:
    """Whether the name fits a pattern in which `*` stands for any text. In linear time, unlike a regular expression."""
    if pattern is None:
        return True
    first, *others = pattern.split("*")
    if not others:
        return pattern == name
    last = others.pop()
    if len(name) < len(first) + len(last) or not (name.startswith(first) and name.endswith(last)):
        return False
    place, end = len(first), len(name) - len(last)
    for part in others:
        # The first place that fits leaves the most for the parts after it.
        found = name.find(part, place, end)
        if found < 0:
            return False
        place = found + len(part)
    return True


def subject_of(each: Each, labels: Labels) -> str:
    match each:
        case "job":
            return labels.job or labels.task
        case "task":
            return labels.task
        case "queue":
            return labels.queue
        case "rule":
            return ""


def in_words(seconds: float) -> str:
    """A duration with its two largest units."""
    left, words = max(0, round(seconds)), []
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        number, left = divmod(left, length)
        if number:
            words.append(f"{number} {unit}")
    return " ".join(words[:2]) or "0 s"


def several(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
