"""Conditions about recurring jobs: deadlines and ticks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from foliot.alerts.facts import Facts
from foliot.alerts.findings import Finding, Verdict, in_words, matches
from foliot.model.alert_rule import NotFinished, NotStarted, TickMissed, seconds_of, span_of
from foliot.model.namespace import bare
from foliot.store.alert_conditions import JobProgress
from foliot.store.alert_rules import StoredRule
from foliot.triggers.zones import zone_named

# Ticks are noted in transactions that may commit later than others that began after them.
HOLD = timedelta(seconds=90)


async def deadline(rule: StoredRule, facts: Facts) -> Verdict:
    """`not_started` and `not_finished`."""
    condition = rule.rule.condition
    assert isinstance(condition, NotStarted | NotFinished)  # noqa: S101
    name = rule.namespace.qualified(rule.rule.scope.job or "")
    is_about_start = isinstance(condition, NotStarted)
    if condition.within is not None:
        overdue_from, since = facts.now - span_of(condition.within), facts.now
        limit = facts.now
    else:
        limit = last_deadline(condition, facts.now)
        overdue_from, since = facts.now, limit - span_of(condition.lookback)
    (progress,) = await facts.store.alert_conditions.job_progress([(name, since, overdue_from)])
    if condition.within is not None:
        return _overdue(condition, name, progress)
    done_at = progress.started_at if is_about_start else progress.succeeded_at
    if done_at is not None or limit < rule.created_at:
        return Verdict()
    verb = "started" if is_about_start else "succeeded"
    why = "" if progress.exists else "; there is no such job"
    summary = (
        f"No run of {bare(name)} has {verb} by {condition.by} ({condition.timezone}), "
        f"within {condition.lookback} before{why}"
    )
    return Verdict({name: Finding(limit, summary, 1, (bare(name),), page=_page(name))})


def _overdue(condition: NotStarted | NotFinished, name: str, progress: JobProgress) -> Verdict:
    is_about_start = isinstance(condition, NotStarted)
    number, since = (
        (progress.unstarted, progress.unstarted_since)
        if is_about_start
        else (progress.unfinished, progress.unfinished_since)
    )
    if not number or since is None:
        return Verdict()
    verb = "started" if is_about_start else "finished"
    summary = (
        f"A run of {bare(name)} was due at {since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC and has not {verb} "
        f"within {condition.within}"
    )
    at = since + span_of(condition.within or "1s")
    return Verdict({name: Finding(at, summary, number, (bare(name),), page=_page(name))})


def last_deadline(condition: NotStarted | NotFinished, now: datetime) -> datetime:
    """The last time at which the clock of the zone showed the time of day."""
    hour, minute = map(int, (condition.by or "00:00").split(":"))
    zone = zone_named(condition.timezone)
    local = now.astimezone(zone)
    for days in range(3):
        day = (local - timedelta(days=days)).date()
        at = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone).astimezone(UTC)
        if at <= now:
            return at
    raise AssertionError("a day has at most 25 hours")


async def tick_missed(rule: StoredRule, facts: Facts) -> Verdict:
    condition = rule.rule.condition
    assert isinstance(condition, TickMissed)  # noqa: S101
    late_from = seconds_of(condition.late)
    read = facts.store.alert_conditions
    missed = await facts.once("missed", lambda: read.missed_ticks(facts.since - HOLD))
    late = await facts.once(("late", late_from), lambda: read.late_jobs(late_from))
    findings = {}
    for tick in missed:
        if matches(rule.rule.scope, rule.namespace, tick.labels) and tick.at > rule.created_at - HOLD:
            findings[tick.labels.job or ""] = _missed(tick.labels.job or "", tick.at)
    for tick in late:
        if matches(rule.rule.scope, rule.namespace, tick.labels):
            job, seconds = tick.labels.job or "", (facts.now - tick.at).total_seconds()
            summary = f"The tick of {bare(job)} at {_time(tick.at)} is late by {in_words(seconds)}"
            since = tick.at + timedelta(seconds=late_from)
            findings[job] = Finding(since, summary, 1, (bare(job),), page=_page(job))
    # A missed tick is read once. Its alert stays until the job fires again.
    remaining = {
        alert.subject: alert.last_at
        for alert in facts.alerts_of(rule.name)
        if alert.subject not in findings and alert.last_at is not None
    }
    fired = await read.later_ticks(remaining) if remaining else set()
    over = {alert.subject for alert in facts.alerts_of(rule.name) if alert.subject not in findings}
    return Verdict(findings, frozenset(over - (remaining.keys() - fired)))


def _missed(job: str, at: datetime) -> Finding:
    summary = f"The tick of {bare(job)} at {_time(at)} was missed, and no later one has fired"
    return Finding(at, summary, 1, (bare(job),), last_at=at, page=_page(job))


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _page(name: str) -> str:
    return f"jobs/{quote(bare(name), safe='')}"
