"""Checks the rules of alerts. One process at a time does it, under a lease in the table of exports.

Every few seconds it reads the rules; without any, nothing else. It sums up the runs that have ended since the last
look, reads what other conditions need, and stores in one statement which alerts open, change and resolve, with the
messages that tell of it. Only then does the place in history advance, so that after a crash the same endings are looked
at again; a unique key and the time of an alert's last failure keep them from counting twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from foliot.alert_events import AlertsDecided
from foliot.alerts.facts import Facts
from foliot.alerts.findings import Verdict
from foliot.alerts.installation_conditions import (
    archive_failing,
    circuit_open,
    database,
    few_schedulers,
    few_workers,
    heartbeat_silent,
    no_worker,
    queue_lag,
)
from foliot.alerts.job_conditions import deadline, tick_missed
from foliot.alerts.lifecycle import decide
from foliot.alerts.run_conditions import counts_of, dead_letters, run_failed, starts_of, success_rate, unusual_duration
from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import StoreUnavailable
from foliot.events import EventBus
from foliot.model import alert_rule
from foliot.model.ids import new_id
from foliot.service import Service
from foliot.store.alert_endings import EndingPage
from foliot.store.alert_rules import StoredRule
from foliot.store.alerts import Alert, NewDelivery
from foliot.store.exports import FIRST_ID, Place
from foliot.store.store import Store

LEASE = "alerts"
LOOK_SECONDS = 5.0
LEASE_SECONDS = 15.0
# Longer than the statement timeout: a transaction that is ending a run has finished by then.
HOLD_SECONDS = 10.0
TIDY_SECONDS = 60.0
# Endings from before are not looked at, for example after months without a scheduler node.
BACK = timedelta(days=1)
NO_ENDINGS = EndingPage((), 0, None)
OF_ENDINGS = (alert_rule.RunFailed, alert_rule.SuccessRate, alert_rule.UnusualDuration)
"""Conditions that need the endings of runs."""

Check = Callable[[StoredRule, Facts], Awaitable[Verdict]]
CHECKS: Mapping[type, Check] = {
    alert_rule.RunFailed: run_failed,
    alert_rule.DeadLetters: dead_letters,
    alert_rule.SuccessRate: success_rate,
    alert_rule.UnusualDuration: unusual_duration,
    alert_rule.NotStarted: deadline,
    alert_rule.NotFinished: deadline,
    alert_rule.TickMissed: tick_missed,
    alert_rule.QueueLag: queue_lag,
    alert_rule.NoWorker: no_worker,
    alert_rule.CircuitOpen: circuit_open,
    alert_rule.FewWorkers: few_workers,
    alert_rule.FewSchedulers: few_schedulers,
    alert_rule.DatabaseTrouble: database,
    alert_rule.HeartbeatSilent: heartbeat_silent,
    alert_rule.ArchiveFailing: archive_failing,
}


class AlertEvaluator(Service):
    def __init__(self, *, store: Store, config: Config, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._config = config
        self._owner = new_id()
        self._tidied_at: float | None = None

    async def run_once(self) -> float:
        rules = await self._store.alert_rules.list_alert_rules(None)
        if not rules:
            return LOOK_SECONDS
        horizon = await self._store.run_events.ending_horizon(HOLD_SECONDS)
        # The first look ever begins where the first rule was made, not where it happens to find the rule.
        begin = min(horizon, *(rule.created_at for rule in rules))
        place = await self._store.exports.take_export(LEASE, self._owner, LEASE_SECONDS, begin)
        if place is None:
            return LOOK_SECONDS
        after = max(place, (max(horizon - BACK, _oldest_of(rules, horizon)), FIRST_ID))
        page = await self._endings(rules, after, horizon)
        await self._decide(rules, after[0], page)
        reached = page.reached if page.is_full and page.reached else max(place, (horizon, FIRST_ID))
        counts = counts_of(rules, page.groups, reached[0])
        await self._store.alert_endings.advance_alerts(self._owner, place, reached, counts)
        await self._tidy(rules, horizon)
        return 0.0 if page.is_full else LOOK_SECONDS

    async def on_stop(self) -> None:
        # The next node need not wait for the lease.
        with suppress(StoreUnavailable):
            await self._store.exports.release_export(LEASE, self._owner)

    async def _endings(self, rules: Sequence[StoredRule], after: Place, horizon: datetime) -> EndingPage:
        if not any(rule.rule.enabled and isinstance(rule.rule.condition, OF_ENDINGS) for rule in rules):
            return NO_ENDINGS
        return await self._store.alert_endings.sum_up_endings(after, horizon)

    async def _decide(self, rules: Sequence[StoredRule], since: datetime, page: EndingPage) -> None:
        store = self._store
        alerts = await store.alerts.list_unresolved()
        silences = await store.alert_rules.list_silences(None)
        now = await store.jobs.database_now()
        facts = Facts(store=store, now=now, since=since, groups=page.groups, alerts=alerts)
        changed: list[Alert] = []
        deliveries: list[NewDelivery] = []
        for rule in rules:
            verdict = await self._verdict(rule, facts)
            if verdict is None:
                continue
            decided = decide(
                rule,
                facts.alerts_of(rule.name),
                verdict,
                silences=silences,
                now=now,
                public_url=self._config.public_url,
            )
            changed += decided.alerts
            deliveries += decided.deliveries
        if not changed:
            return
        stored = await store.alerts.store_alerts(self._owner, changed, deliveries)
        resolved = sum(alert.state == "resolved" for alert in changed)
        self.events.emit(AlertsDecided(stored.opened, min(resolved, stored.changed), stored.waiting, stored.dropped))

    async def _verdict(self, rule: StoredRule, facts: Facts) -> Verdict | None:
        """Returns None if the look fails. The condition of a disabled rule holds for nothing."""
        if not rule.rule.enabled:
            return Verdict()
        check = CHECKS[type(rule.rule.condition)](rule, facts)
        return await self.attempt(f"the rule {rule.name}", _optional(check), None)

    async def _tidy(self, rules: Sequence[StoredRule], now: datetime) -> None:
        if self._tidied_at is not None and self.clock.monotonic() - self._tidied_at < TIDY_SECONDS:
            return
        self._tidied_at = self.clock.monotonic()
        await self._store.alert_endings.forget_counts(starts_of(rules, now))
        await self._store.alerts.forget_alerts(now - timedelta(days=self._config.retention_days))


def _oldest_of(rules: Sequence[StoredRule], horizon: datetime) -> datetime:
    """Earlier endings concern no rule, for example because there was none for a while."""
    return min((rule.created_at for rule in rules if isinstance(rule.rule.condition, OF_ENDINGS)), default=horizon)


async def _optional(check: Awaitable[Verdict]) -> Verdict | None:
    return await check
