"""Decides which alerts open, change, repeat and resolve, and which messages tell of it. Pure.

An alert opens once for a rule and a subject. If very many subjects of a rule are in trouble at once, the others share
one alert. Its channels get a message when it opens, again after `repeat` unless
somebody has acknowledged it, and when it resolves, if they got one before. A silence keeps messages back. If the alert
is still open when the silence ends, the channels get the message then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from uuid import UUID

from foliot.alerts.findings import SUBJECTS_MAX, Finding, Verdict
from foliot.alerts.message import AlertEvent, AlertMessage
from foliot.model.alert_rule import span_of
from foliot.model.ids import new_id
from foliot.model.namespace import bare
from foliot.store.alert_rules import Silence, StoredRule
from foliot.store.alerts import Alert, NewDelivery

TITLE_MAX = 200
# Of one rule. Further subjects share one more.
OPEN_MAX = 50
OTHERS = "others"
SUMMARY_MAX = 1000


@dataclass(frozen=True, slots=True)
class Decided:
    alerts: Sequence[Alert]
    deliveries: Sequence[NewDelivery]


def decide(
    rule: StoredRule,
    alerts: Sequence[Alert],
    verdict: Verdict,
    *,
    silences: Sequence[Silence],
    now: datetime,
    public_url: str = "",
) -> Decided:
    """`alerts` are those of the rule that are unresolved."""
    changed: list[Alert] = []
    deliveries: list[NewDelivery] = []
    known = {alert.subject: alert for alert in alerts}
    verdict = with_others(verdict, known)
    for subject in {**known, **verdict.findings}:
        alert, finding = known.get(subject), verdict.findings.get(subject)
        is_silenced = any(silence.covers(rule.name, subject) for silence in silences)
        if alert is not None and (verdict.is_over(subject) or alert.resolved_by is not None):
            after, event = _over(alert, now)
        elif alert is not None:
            after, event = _open(rule, _updated(rule, alert, finding), now, is_silenced=is_silenced)
        elif finding is not None:
            after, event = _open(rule, _new(rule, subject, finding), now, is_silenced=is_silenced)
        else:
            continue
        if event is not None:
            after = replace(after, messages=after.messages + 1, told_at=now)
            deliveries += _deliveries(rule, after, event, public_url)
        if after != alert:
            changed.append(after)
    return Decided(changed, deliveries)


def with_others(verdict: Verdict, known: Collection[str]) -> Verdict:
    """The verdict with one finding in place of those for which there is no room."""
    new = [subject for subject in verdict.findings if subject not in known]
    excess = new[max(0, OPEN_MAX - len(known)) :]
    if not excess:
        return verdict
    findings = dict(verdict.findings)
    shared = [findings.pop(subject) for subject in excess]
    times = [finding.last_at for finding in shared if finding.last_at is not None]
    findings[OTHERS] = Finding(
        since=min(finding.since for finding in shared),
        summary=f"{len(shared)} more, such as: {shared[0].summary}",
        number=sum(finding.number for finding in shared),
        subjects=tuple(bare(subject) for subject in excess[:SUBJECTS_MAX]),
        last_at=max(times, default=None),
        page=shared[0].page,
    )
    return replace(verdict, findings=findings)


def _over(alert: Alert, now: datetime) -> tuple[Alert, AlertEvent | None]:
    if alert.state == "pending":
        return replace(alert, state=None), None
    # Sent even under a silence, because a far end that has opened an incident would keep it open.
    return replace(alert, state="resolved", resolved_at=now), "resolved" if alert.messages else None


def _open(rule: StoredRule, alert: Alert, now: datetime, *, is_silenced: bool) -> tuple[Alert, AlertEvent | None]:
    if alert.state == "pending":
        if rule.rule.hold is not None and now - alert.since < span_of(rule.rule.hold):
            return alert, None
        alert = replace(alert, state="open", opened_at=now)
    if is_silenced:
        return alert, None
    if not alert.messages:
        return alert, "opened"
    repeat = rule.rule.repeat
    is_due = repeat is not None and alert.told_at is not None and now - alert.told_at >= span_of(repeat)
    return alert, "repeated" if is_due and alert.acknowledged_at is None else None


def _new(rule: StoredRule, subject: str, finding: Finding) -> Alert:
    return Alert(
        id=new_id(),
        namespace=rule.namespace.name,
        rule=rule.name,
        subject=subject,
        state="pending",
        severity=rule.rule.severity,
        version=0,
        since=finding.since,
        opened_at=None,
        resolved_at=None,
        resolved_by=None,
        last_at=finding.last_at,
        number=finding.number,
        title=_title(rule, subject),
        summary=finding.summary[:SUMMARY_MAX],
        subjects=finding.subjects,
        log_tail=finding.log_tail,
        page=finding.page,
        messages=0,
        told_at=None,
        acknowledged_at=None,
        acknowledged_by=None,
        note=None,
    )


def _updated(rule: StoredRule, alert: Alert, finding: Finding | None) -> Alert:
    if finding is None:
        return alert
    number = finding.number if finding.last_at is None else finding.number + alert.number
    if finding.last_at is not None and alert.last_at is not None and finding.last_at <= alert.last_at:
        number = alert.number
    # A sentence with other numbers alone is no reason to write.
    if number == alert.number and finding.subjects == alert.subjects and rule.rule.severity == alert.severity:
        return alert
    return replace(
        alert,
        severity=rule.rule.severity,
        number=number,
        summary=finding.summary[:SUMMARY_MAX],
        subjects=finding.subjects,
        log_tail=finding.log_tail,
        last_at=finding.last_at or alert.last_at,
        page=finding.page,
    )


def _title(rule: StoredRule, subject: str) -> str:
    about = bare(subject)
    return (f"{bare(rule.name)}: {about}" if about else bare(rule.name))[:TITLE_MAX]


def _deliveries(rule: StoredRule, alert: Alert, event: AlertEvent, public_url: str) -> list[NewDelivery]:
    message = asdict(message_of(alert, event, public_url))
    return [
        NewDelivery(
            delivery_id(alert.id, channel, alert.messages), alert.id, alert.messages, rule.namespace.qualified(channel),
            message,
        )
        for channel in rule.rule.channels
    ]  # fmt: skip


def message_of(alert: Alert, event: AlertEvent, public_url: str) -> AlertMessage:
    return AlertMessage(
        alert_id=str(alert.id),
        event=event,
        severity=alert.severity,
        namespace=alert.namespace,
        rule=bare(alert.rule),
        title=alert.title,
        summary=alert.summary,
        since=alert.since,
        resolved_at=alert.resolved_at,
        count=alert.number,
        subjects=alert.subjects,
        log_tail=alert.log_tail,
        link=f"{public_url.rstrip('/')}/ui/{alert.page}" if public_url and alert.page else "",
    )


def delivery_id(alert_id: UUID, channel: str, number: int) -> UUID:
    """The same for the same message, however often it is decided."""
    digest = hashlib.sha256(f"{alert_id}/{channel}/{number}".encode()).digest()
    return UUID(bytes=digest[:16], version=5)
