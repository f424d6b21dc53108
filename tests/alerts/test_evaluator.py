"""Alerts open once, tell once, and resolve by themselves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from foliot.alerts.evaluator import LEASE_SECONDS
from foliot.alerts.lifecycle import OPEN_MAX, OTHERS
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.states import RunState
from foliot.store.queries import query_of
from foliot.store.store import Store
from tests.support.alerts import Watch, put_rule
from tests.support.fake_clock import FakeClock
from tests.support.runs import finish, insert

DELETE_RUNS = query_of("delete_runs", (), "delete from foliot.runs")
STEP_BACK = query_of("step_back", (), "update foliot.exports set at = at - interval '1 minute'")


async def fail(
    store: Store, clock: FakeClock, count: int = 1, state: RunState = RunState.FAILED, **fields: Any
) -> None:
    for _ in range(count):
        await finish(store, state, **fields)
        await clock.advance(0.01)


async def test_without_rules_nothing_is_read_and_no_lease_is_taken(watch: Watch, sql: Any) -> None:
    assert await watch.look() == []
    assert await sql.fetchval("select count(*) from foliot.exports") == 0


async def test_a_failed_run_opens_one_alert_that_further_failures_join(watch: Watch, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "failures", "run_failed", channels=["ops"], severity="critical")
    await watch.look()
    await fail(watch.store, fake_clock, error="no such account", output=b"line one\nline two\n")
    (alert,) = await watch.look()
    assert (alert.subject, alert.number, alert.severity) == ("send_invoice", 1, "critical")
    assert "send_invoice failed for good: ValueError: no such account" in alert.summary
    assert alert.log_tail == "line one\nline two"
    await fail(watch.store, fake_clock, 3, error="no such account")
    (again,) = await watch.look()
    assert (again.id, again.number) == (alert.id, 4)
    (message,) = await watch.messages()
    assert (message["event"], message["alert_id"], message["count"]) == ("opened", str(alert.id), 1)
    assert message["title"] == "failures: send_invoice"
    assert await watch.look(3000) != []
    assert await watch.look(700) == []
    assert [message["event"] for message in await watch.messages()] == ["opened", "resolved"]
    (resolved,) = await watch.alerts("resolved")
    assert (resolved.id, resolved.resolved_by) == (alert.id, None)


async def test_a_failure_between_the_first_rule_and_the_first_look_opens_an_alert(
    watch: Watch, fake_clock: FakeClock
) -> None:
    await fail(watch.store, fake_clock)
    await put_rule(watch.store, "failures", "run_failed")
    await fail(watch.store, fake_clock)
    (alert,) = await watch.look()
    assert alert.number == 1


async def test_failures_of_another_scope_or_namespace_open_no_alert(watch: Watch, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "of-charges", "run_failed", scope={"task": "charge*"})
    await put_rule(watch.store, "of-a-queue", "run_failed", scope={"queue": "other"}, each="queue")
    await put_rule(watch.store, "of-shop", "run_failed", namespace="shop", each="rule")
    await watch.look()
    await fail(watch.store, fake_clock, task="send_invoice", queue="mail")
    await fail(watch.store, fake_clock, task="shop/pay", queue="shop/default")
    assert await watch.look() == []
    (alert,) = await watch.alerts("open", namespace=Namespace("shop"))
    assert (alert.rule, alert.subject) == ("shop/of-shop", "")
    await fail(watch.store, fake_clock, task="charge_card", queue="other")
    assert {alert.rule for alert in await watch.look()} == {"of-charges", "of-a-queue"}


async def test_a_success_rate_below_the_limit_opens_and_recovers(watch: Watch, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "rate", "success_rate", window="10m", min_runs=50, channels=["ops"])
    await watch.look()
    await fail(watch.store, fake_clock, 45, RunState.SUCCEEDED)
    await fail(watch.store, fake_clock, 3)
    assert await watch.look() == []
    await fail(watch.store, fake_clock, 2, RunState.SUCCEEDED)
    assert await watch.look() == []
    assert len(await watch.look()) == 1
    (alert,) = await watch.alerts("open")
    assert alert.summary.startswith("94.0 % of 50 runs succeeded in the last 10m, and 3 failed")
    await fail(watch.store, fake_clock, 20, RunState.SUCCEEDED)
    await watch.look()
    assert await watch.look() == []
    assert [message["event"] for message in await watch.messages()] == ["opened", "resolved"]


async def test_a_rate_of_exactly_the_limit_is_good(watch: Watch, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "rate", "success_rate", min_runs=20)
    await watch.look()
    await fail(watch.store, fake_clock, 19, RunState.SUCCEEDED)
    await fail(watch.store, fake_clock)
    await watch.look()
    assert await watch.look() == []


async def test_endings_outside_of_the_window_no_longer_count(watch: Watch, fake_clock: FakeClock, sql: Any) -> None:
    await put_rule(watch.store, "rate", "success_rate", min_runs=1, window="5m")
    await watch.look()
    await fail(watch.store, fake_clock)
    await watch.look()
    assert len(await watch.look()) == 1
    assert await watch.look(400) == []
    await watch.look(100)
    assert await sql.fetchval("select count(*) from foliot.alert_counts") == 0


async def test_very_many_subjects_share_one_alert(watch: Watch, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "failures", "run_failed", channels=["ops"], resolve_after="10m")
    await watch.look()
    for number in range(OPEN_MAX + 7):
        await finish(watch.store, RunState.FAILED, task=f"task_{number}")
    alerts = await watch.look()
    assert len(alerts) == OPEN_MAX + 1
    (shared,) = [alert for alert in alerts if alert.subject == OTHERS]
    assert (shared.number, shared.summary[:7]) == (7, "7 more,")
    await finish(watch.store, RunState.FAILED, task="one_more")
    assert len(await watch.look()) == OPEN_MAX + 1
    (shared,) = [alert for alert in await watch.alerts("open") if alert.subject == OTHERS]
    assert shared.number == 8
    assert len(await watch.messages()) == OPEN_MAX + 1
    assert await watch.look(700) == []


async def test_endings_from_before_any_rule_are_not_read_again(watch: Watch, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "old", "success_rate", min_runs=1)
    await watch.look()
    await watch.store.alert_rules.delete_alert_rule("old", "eve")
    await fail(watch.store, fake_clock)
    await fake_clock.advance(60)
    await put_rule(watch.store, "new", "success_rate", min_runs=1)
    await watch.look()
    assert await watch.look() == []


async def test_a_queue_lag_opens_and_resolves(watch: Watch, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "lag", "queue_lag", channels=["ops"])
    await watch.look()
    await insert(watch.store)
    assert await watch.look() == []
    (alert,) = await watch.look(7)
    assert (alert.subject, alert.number) == ("mail", 1)
    assert alert.summary == (
        "One run waits in the queue mail, the first for 12 s; the rule allows 10s; no live worker serves the queue"
    )
    assert alert.since == fake_clock.now() - timedelta(seconds=2)
    assert await watch.look() != []
    await watch.store.database.execute(DELETE_RUNS)
    assert await watch.look() == []
    assert [message["event"] for message in await watch.messages()] == ["opened", "resolved"]


async def test_a_condition_must_hold_for_a_while(watch: Watch, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "lag", "queue_lag", channels=["ops"], **{"for": "1m"})
    await watch.look()
    await insert(watch.store)
    assert await watch.look(30) == []
    assert len(await watch.alerts("pending")) == 1
    await watch.store.database.execute(DELETE_RUNS)
    assert await watch.look() == []
    assert await watch.alerts("pending", "resolved") == []
    await insert(watch.store)
    await watch.look(30)
    (alert,) = await watch.look(45)
    assert alert.opened_at == fake_clock.now()
    assert [message["event"] for message in await watch.messages()] == ["opened"]


async def test_an_open_alert_is_repeated_until_somebody_acknowledges_it(watch: Watch) -> None:
    await put_rule(watch.store, "workers", "few_workers", channels=["ops", "boss"], repeat="1h")
    (alert,) = await watch.look()
    assert alert.summary == "0 live workers for this namespace; the rule wants 1 or more"
    await watch.look(1800)
    assert len(await watch.messages()) == 2
    await watch.look(1800)
    events = [message["event"] for message in await watch.messages()]
    assert events == ["opened", "opened", "repeated", "repeated"]
    assert await watch.store.alerts.acknowledge_alert(alert.id, Namespace(), by="eve", note="on it")
    assert len(await watch.look(7200)) == 1
    assert len(await watch.messages()) == 4


async def test_a_silence_keeps_messages_back_until_it_ends(watch: Watch, fake_clock: FakeClock) -> None:
    store = watch.store
    await put_rule(store, "workers", "few_workers", channels=["ops"])
    until = fake_clock.now() + timedelta(minutes=10)
    assert await store.alert_rules.add_silence(
        new_id(), Namespace(), rule="workers", subject=None, reason="maintenance", by="eve", until=until
    )
    assert len(await watch.look()) == 1
    assert await watch.messages() == []
    await watch.look(600)
    assert [message["event"] for message in await watch.messages()] == ["opened"]


async def test_a_person_can_resolve_an_alert(watch: Watch, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "failures", "run_failed", channels=["ops"])
    await watch.look()
    await fail(watch.store, fake_clock)
    (alert,) = await watch.look()
    assert await watch.store.alerts.resolve_alert(alert.id, Namespace(), by="eve")
    assert await watch.look() == []
    (resolved,) = await watch.alerts("resolved")
    assert resolved.resolved_by == "eve"
    assert [message["event"] for message in await watch.messages()] == ["opened", "resolved"]


async def test_the_alerts_of_a_deleted_or_disabled_rule_resolve(watch: Watch) -> None:
    await put_rule(watch.store, "one", "few_workers")
    await put_rule(watch.store, "two", "few_workers")
    assert len(await watch.look()) == 2
    assert await watch.store.alert_rules.delete_alert_rule("one", "eve")
    await put_rule(watch.store, "two", "few_workers", enabled=False)
    assert await watch.look() == []
    assert len(await watch.alerts("resolved")) == 2


async def test_another_process_takes_over_and_tells_nothing_twice(watch: Watch, fake_clock: FakeClock) -> None:
    second = Watch(watch.store, fake_clock, watch.store.events, watch.evaluator._config)
    await put_rule(watch.store, "failures", "run_failed", channels=["ops"])
    await watch.look()
    await fail(watch.store, fake_clock, 2)
    await watch.look()
    # The first process died after it had stored the alert, and before it advanced.
    await watch.store.database.execute(STEP_BACK)
    await second.look(LEASE_SECONDS + 1)
    (alert,) = await watch.alerts("open")
    assert alert.number == 2
    await watch.look()
    assert [message["event"] for message in await watch.messages()] == ["opened"]


async def test_a_process_that_lost_the_lease_stores_nothing(watch: Watch, fake_clock: FakeClock) -> None:
    await put_rule(watch.store, "workers", "few_workers")
    await watch.look()
    (alert,) = await watch.alerts("open")
    await watch.store.exports.release_export("alerts", watch.evaluator._owner)
    stored = await watch.store.alerts.store_alerts(watch.evaluator._owner, [alert], [])
    assert (stored.opened, stored.changed) == (0, 0)


@pytest.mark.parametrize("page", [1, 3])
async def test_endings_are_counted_once_whatever_the_size_of_a_page(
    watch: Watch, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr("foliot.store.alert_endings.PAGE", page)
    await put_rule(watch.store, "rate", "success_rate", min_runs=1)
    await put_rule(watch.store, "failures", "run_failed")
    await watch.look()
    await fail(watch.store, fake_clock, 7)
    await watch.look()
    await watch.look()
    assert {alert.rule: alert.number for alert in await watch.alerts("open")} == {"rate": 7, "failures": 7}
