"""Conditions about queues, tasks, nodes, the database, heartbeats and the archive."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import quote

from foliot.alerts.facts import Facts
from foliot.alerts.findings import SUBJECTS_MAX, Finding, Verdict, fits, in_words, several
from foliot.model.alert_rule import (
    DatabaseTrouble,
    FewSchedulers,
    FewWorkers,
    HeartbeatSilent,
    QueueLag,
    seconds_of,
    span_of,
)
from foliot.model.namespace import bare
from foliot.store.alert_conditions import QueueLine
from foliot.store.alert_rules import StoredRule
from foliot.store.database_health import Facts as DatabaseFacts
from foliot.store.database_health import Replica, Slot


async def queue_lag(rule: StoredRule, facts: Facts) -> Verdict:
    condition = rule.rule.condition
    assert isinstance(condition, QueueLag)  # noqa: S101
    above = span_of(condition.above)
    findings = {}
    for line in await facts.once("queues", facts.store.alert_conditions.queue_lags):
        lag = facts.now - line.oldest_at
        if lag > above and rule.namespace.owns(line.queue) and fits(rule.rule.scope.queue, bare(line.queue)):
            waiting = (
                f"{line.ready}{'+' if line.ready >= 1000 else ''} runs wait" if line.ready > 1 else "One run waits"
            )
            summary = (
                f"{waiting} in the queue {bare(line.queue)}, the first for {in_words(lag.total_seconds())}; "
                f"the rule allows {condition.above}{_why(line)}"
            )
            subjects = (bare(line.queue),)
            page = f"runs?q={quote(f'queue:{bare(line.queue)} state:ready')}"
            findings[line.queue] = Finding(line.oldest_at + above, summary, line.ready, subjects, page=page)
    return Verdict(findings)


def _why(line: QueueLine) -> str:
    if line.is_paused:
        return "; the queue is paused"
    if not line.workers:
        return "; no live worker serves the queue"
    return f"; {several(line.workers, 'worker')} {'serves' if line.workers == 1 else 'serve'} it"


async def no_worker(rule: StoredRule, facts: Facts) -> Verdict:
    scope, findings = rule.rule.scope, {}
    for one in await facts.once("unserved", facts.store.alert_conditions.tasks_without_worker):
        if not rule.namespace.owns(one.queue) or one.since > facts.now:
            continue
        if not (fits(scope.task, bare(one.task)) and fits(scope.queue, bare(one.queue))):
            continue
        summary = (
            f"{'One run waits' if one.waiting == 1 else f'{one.waiting} runs wait'} for the task {bare(one.task)}, "
            f"and no live worker of the queue {bare(one.queue)} offers it"
        )
        findings[one.task] = Finding(one.since, summary, one.waiting, (bare(one.task),), page=_page(one.task))
    return Verdict(findings)


async def circuit_open(rule: StoredRule, facts: Facts) -> Verdict:
    findings = {}
    for one in await facts.once("circuits", facts.store.alert_conditions.open_circuits):
        if rule.namespace.owns(one.task) and fits(rule.rule.scope.task, bare(one.task)):
            summary = (
                f"The circuit of the task {bare(one.task)} is open after {several(one.failures, 'failure')} in a row; "
                "its runs do not start"
            )
            findings[one.task] = Finding(one.since, summary, 1, (bare(one.task),), page=_page(one.task))
    return Verdict(findings)


def _page(task: str) -> str:
    return f"runs?q={quote(f'task:{bare(task)}')}"


async def few_workers(rule: StoredRule, facts: Facts) -> Verdict:
    condition, pattern = rule.rule.condition, rule.rule.scope.queue
    assert isinstance(condition, FewWorkers)  # noqa: S101
    found = await facts.once("workers", facts.store.alert_conditions.live_workers)
    serving = [
        name
        for name, queues in found
        if any(rule.namespace.owns(queue) and fits(pattern, bare(queue)) for queue in queues)
    ]
    if len(serving) >= condition.below:
        return Verdict()
    where = "this namespace" if pattern is None else f"the queue {pattern}"
    summary = f"{several(len(serving), 'live worker')} for {where}; the rule wants {condition.below} or more"
    return Verdict({"": Finding(facts.now, summary, len(serving), tuple(serving[:SUBJECTS_MAX]), page="workers")})


async def few_schedulers(rule: StoredRule, facts: Facts) -> Verdict:
    condition = rule.rule.condition
    assert isinstance(condition, FewSchedulers)  # noqa: S101
    number = await facts.once("schedulers", facts.store.alert_conditions.count_live_schedulers)
    if number >= condition.below:
        return Verdict()
    summary = f"{several(number, 'live scheduler node')}; the rule wants {condition.below} or more"
    return Verdict({"": Finding(facts.now, summary, number)})


async def database(rule: StoredRule, facts: Facts) -> Verdict:
    condition, health = rule.rule.condition, facts.store.database_health
    assert isinstance(condition, DatabaseTrouble)  # noqa: S101
    found = await facts.once("database", health.read_facts)
    replicas, slots = await facts.once("replication", health.list_replication)
    troubles = dict([*_of_database(condition, found), *_of_replication(condition, replicas, slots)])
    return Verdict({subject: Finding(facts.now, summary) for subject, summary in troubles.items()})


def _of_database(condition: DatabaseTrouble, found: DatabaseFacts) -> Iterator[tuple[str, str]]:
    age, limit = found.oldest_transaction_seconds or 0, condition.transaction_age
    if limit is not None and age > seconds_of(limit):
        yield (
            "transaction_age",
            f"A transaction of {found.oldest_transaction_of or 'an unnamed session'} has been open for "
            f"{in_words(age)}; the rule allows {limit}, because dead rows can't be removed meanwhile",
        )
    if condition.size_bytes is not None and found.bytes > condition.size_bytes:
        yield "size", f"The database has {found.bytes} bytes; the rule allows {condition.size_bytes}"
    percent = 100 * found.connections / max(1, found.connections_max)
    if condition.connections_percent is not None and percent > condition.connections_percent:
        yield (
            "connections",
            f"{found.connections} of {found.connections_max} connections are in use; the rule allows "
            f"{condition.connections_percent:g} %",
        )


def _of_replication(
    condition: DatabaseTrouble, replicas: list[Replica], slots: list[Slot]
) -> Iterator[tuple[str, str]]:
    if (limit := condition.replication_lag) is not None:
        for replica in replicas:
            if (replica.lag_seconds or 0) > seconds_of(limit):
                behind = in_words(replica.lag_seconds or 0)
                yield (
                    f"replica {replica.name}",
                    f"The standby {replica.name} is {behind} behind; the rule allows {limit}",
                )
    if condition.kept_wal_bytes is not None:
        for slot in slots:
            if (slot.kept_bytes or 0) > condition.kept_wal_bytes:
                yield (
                    f"slot {slot.name}",
                    f"PostgreSQL keeps {slot.kept_bytes} bytes of its log for the replication slot {slot.name}; "
                    f"the rule allows {condition.kept_wal_bytes}",
                )


async def heartbeat_silent(rule: StoredRule, facts: Facts) -> Verdict:
    condition = rule.rule.condition
    assert isinstance(condition, HeartbeatSilent)  # noqa: S101
    name = rule.namespace.qualified(condition.heartbeat)
    heartbeat = (await facts.heartbeats()).get(name)
    last_at = rule.created_at if heartbeat is None else max(heartbeat.at, rule.updated_at)
    limit = last_at + span_of(condition.every) + span_of(condition.grace)
    if facts.now <= limit:
        return Verdict()
    silent = in_words((facts.now - last_at).total_seconds())
    came = "has never come" if heartbeat is None or not heartbeat.number else f"came last {silent} ago"
    summary = (
        f"The heartbeat {condition.heartbeat} {came}; the rule expects it every {condition.every} "
        f"and waits {condition.grace} more"
    )
    return Verdict({name: Finding(limit, summary, 1, (condition.heartbeat,))})


async def archive_failing(rule: StoredRule, facts: Facts) -> Verdict:
    failing = await facts.once("archive", facts.store.alert_conditions.failing_archive)
    if failing is None:
        return Verdict()
    since, error = failing
    lasting = in_words(max(timedelta(), facts.now - since).total_seconds())
    return Verdict({"": Finding(since, f"The archive has failed for {lasting}: {error}")})
