"""Conditions about how runs end: failures, dead letters, success rates and durations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from foliot.alerts.facts import Facts
from foliot.alerts.findings import SUBJECTS_MAX, Finding, Verdict, in_words, matches, several, subject_of
from foliot.model.alert_rule import DeadLetters, RunFailed, SuccessRate, UnusualDuration, seconds_of, span_of
from foliot.model.namespace import bare
from foliot.store.alert_endings import EndingGroup, Failure
from foliot.store.alert_rules import StoredRule

TAIL_LINES = 20
DURATIONS_SINCE = timedelta(days=30)
BUCKETS = 100
BUCKET_SECONDS_MIN = 10
DESCRIBED = 100
"""The failures of one look whose error and output are read."""


async def run_failed(rule: StoredRule, facts: Facts) -> Verdict:
    condition = rule.rule.condition
    assert isinstance(condition, RunFailed)  # noqa: S101
    failed: dict[str, list[EndingGroup]] = {}
    known = {alert.subject: alert.last_at for alert in facts.alerts_of(rule.name)}
    for group in facts.groups:
        if group.failed_at is None or group.failed_at < rule.updated_at:
            continue
        if not matches(rule.rule.scope, rule.namespace, group.labels):
            continue
        subject = subject_of(condition.each, group.labels)
        last_at = known.get(subject)
        if last_at is None or group.failed_at > last_at:
            failed.setdefault(subject, []).append(group)
    latest = [max(groups, key=failed_at) for groups in failed.values()][:DESCRIBED]
    described = await _described(facts, latest) if latest else {}
    findings = {subject: _failure(subject, groups, described) for subject, groups in failed.items()}
    quiet = span_of(condition.resolve_after)
    open_since = {subject: at for subject, at in known.items() if at is not None and subject not in findings}
    recovered = await facts.store.alert_endings.recovered_jobs(open_since) if open_since else set()
    over = {subject for subject, at in open_since.items() if subject in recovered or facts.now - at > quiet}
    return Verdict(findings, frozenset(over))


async def _described(facts: Facts, groups: Sequence[EndingGroup]) -> Mapping[UUID, Failure]:
    ids = [group.failed_ids[0] for group in groups]
    return await facts.store.alert_endings.describe_failures(ids, min(map(failed_at, groups)))


def failed_at(group: EndingGroup) -> datetime:
    assert group.failed_at is not None  # noqa: S101
    return group.failed_at


def _failure(subject: str, groups: Sequence[EndingGroup], described: Mapping[UUID, Failure]) -> Finding:
    latest = max(groups, key=failed_at)
    run_id = latest.failed_ids[0]
    failure, number = described.get(run_id), sum(group.failed for group in groups)
    name = bare(latest.labels.job or latest.labels.task)
    summary = f"Run {run_id} of {name} failed for good"
    if failure is not None:
        tries = f" after {failure.attempt} attempts" if failure.attempt > 1 else ""
        why = (
            f": {failure.kind}: {failure.message}" if failure.kind else f": {failure.reason}" if failure.reason else ""
        )
        summary += tries + why
    if number > 1:
        summary += f" ({several(number, 'failure')} since the last look)"
    ids = [str(one) for group in groups for one in group.failed_ids][:SUBJECTS_MAX]
    at = failed_at(latest)
    return Finding(
        since=at,
        summary=summary,
        number=number,
        subjects=tuple(ids),
        log_tail="" if failure is None else last_lines(failure.tail),
        last_at=at,
        page=f"runs/{run_id}",
    )


def last_lines(output: str) -> str:
    return "\n".join(output.replace("\0", "").splitlines()[-TAIL_LINES:])


async def dead_letters(rule: StoredRule, facts: Facts) -> Verdict:
    condition = rule.rule.condition
    assert isinstance(condition, DeadLetters)  # noqa: S101
    since = facts.now - span_of(condition.window)
    found = await facts.once(
        ("dead_letters", condition.window), lambda: facts.store.alert_conditions.unreplayed_failures(since)
    )
    groups = [group for group in found if matches(rule.rule.scope, rule.namespace, group.labels)]
    number = sum(group.number for group in groups)
    if number <= condition.above:
        return Verdict()
    groups.sort(key=lambda group: -group.number)
    names = tuple(dict.fromkeys(bare(group.labels.job or group.labels.task) for group in groups))[:SUBJECTS_MAX]
    summary = (
        f"{several(number, 'run')} failed in the last {condition.window} and wait for a replay; "
        f"the rule allows {condition.above}"
    )
    first = min(group.first_at for group in groups)
    return Verdict({"": Finding(first, summary, number, names, page="runs?q=state%3Afailed")})


def bucket_seconds(condition: SuccessRate) -> int:
    return max(BUCKET_SECONDS_MIN, seconds_of(condition.window) // BUCKETS)


def counts_of(
    rules: Sequence[StoredRule], groups: Sequence[EndingGroup], at: datetime
) -> dict[tuple[str, str, datetime], tuple[int, int]]:
    """Counts a page of endings for the rules that watch a success rate."""
    found: dict[tuple[str, str, datetime], tuple[int, int]] = {}
    for rule in rules:
        condition = rule.rule.condition
        if not isinstance(condition, SuccessRate) or not rule.rule.enabled:
            continue
        bucket = at - timedelta(seconds=at.timestamp() % bucket_seconds(condition))
        for group in groups:
            if (group.succeeded or group.failed) and matches(rule.rule.scope, rule.namespace, group.labels):
                key = (rule.name, subject_of(condition.each, group.labels), bucket)
                succeeded, failed = found.get(key, (0, 0))
                found[key] = (succeeded + group.succeeded, failed + group.failed)
    return found


def starts_of(rules: Sequence[StoredRule], now: datetime) -> dict[str, datetime]:
    """The start of the window of each rule that watches a success rate."""
    return {
        rule.name: now - span_of(rule.rule.condition.window)
        for rule in rules
        if isinstance(rule.rule.condition, SuccessRate)
    }


async def success_rate(rule: StoredRule, facts: Facts) -> Verdict:
    condition = rule.rule.condition
    assert isinstance(condition, SuccessRate)  # noqa: S101
    starts = starts_of([rule], facts.now)
    found = await facts.store.alert_endings.read_counts(starts)
    findings = {}
    for (_, subject), (succeeded, failed) in found.items():
        number = succeeded + failed
        if number < condition.min_runs or succeeded * 100 >= condition.below * number:
            continue
        share = f"{100 * succeeded / number:.1f} %"
        about = f" of {bare(subject)}" if subject else ""
        summary = (
            f"{share} of {several(number, 'run')}{about} succeeded in the last {condition.window}, "
            f"and {failed} failed; the rule wants {condition.below:g} %"
        )
        findings[subject] = Finding(facts.now, summary, failed, (bare(subject),) if subject else (), page="runs")
    return Verdict(findings)


async def unusual_duration(rule: StoredRule, facts: Facts) -> Verdict:
    condition = rule.rule.condition
    assert isinstance(condition, UnusualDuration)  # noqa: S101
    at_least = seconds_of(condition.at_least)
    started_before = facts.now - timedelta(seconds=at_least)
    running = await facts.once(("running", at_least), lambda: facts.store.alert_conditions.running_jobs(started_before))
    alerts = facts.alerts_of(rule.name)
    names = dict.fromkeys(alert.subject for alert in alerts)
    names |= dict.fromkeys(running)
    names |= dict.fromkeys(
        group.labels.job
        for group in facts.groups
        if group.labels.job is not None and matches(rule.rule.scope, rule.namespace, group.labels)
    )
    if not names:
        return Verdict()
    asked = [name for name in names if name is not None and rule.namespace.owns(name)]
    findings = {}
    for latest in await facts.store.alert_conditions.latest_durations(asked, facts.now - DURATIONS_SINCE):
        if latest.usual_seconds is None or latest.number < condition.min_runs:
            continue
        if latest.seconds < max(at_least, condition.factor * latest.usual_seconds):
            continue
        if not matches(rule.rule.scope, rule.namespace, latest.labels):
            continue
        job = latest.labels.job or ""
        verb = "has been running for" if latest.is_running else "took"
        summary = (
            f"Run {latest.run_id} of {bare(job)} {verb} {in_words(latest.seconds)}; 95 % of its last "
            f"{latest.number} runs took {in_words(latest.usual_seconds)} or less"
        )
        since = latest.started_at + timedelta(seconds=max(at_least, condition.factor * latest.usual_seconds))
        findings[job] = Finding(since, summary, 1, (str(latest.run_id),), page=f"runs/{latest.run_id}")
    return Verdict(findings)
