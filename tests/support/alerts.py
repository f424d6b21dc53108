"""Rules of alerts, and evaluations that a test runs step by step."""

from __future__ import annotations

from typing import Any

import msgspec

from foliot.alerts.evaluator import LOOK_SECONDS, AlertEvaluator
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.alert_rule import AlertRule, check_rule
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.store.alerts import Alert
from foliot.store.queries import query_of
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock

DEFAULT = Namespace()
MESSAGES = query_of("messages", (), "select message from foliot.alert_deliveries order by created_at, number, channel")


async def put_rule(store: Store, name: str, kind: str, *, namespace: str = "default", **fields: Any) -> None:
    """Fields of the condition come first; those of the rule have their own names."""
    names = {field.encode_name for field in msgspec.structs.fields(AlertRule)}
    of_rule = {field: value for field, value in fields.items() if field in names}
    condition = {"kind": kind} | {field: value for field, value in fields.items() if field not in names}
    rule = msgspec.convert({"condition": condition} | of_rule, AlertRule)
    check_rule(rule)
    assert await store.alert_rules.put_alert_rule(Namespace(namespace).qualified(name), rule, "test")


async def opened_alert(store: Store, namespace: str = "default", subject: str = "mail") -> Alert:
    """An open alert that does not stem from an evaluation."""
    rule = Namespace(namespace).qualified("opened")
    await put_rule(store, "opened", "queue_lag", namespace=namespace)
    now, owner, alert_id = await store.jobs.database_now(), new_id(), new_id()
    assert await store.exports.take_export("alerts", owner, 60, now) is not None
    alert = Alert(
        alert_id, namespace, rule, f"{subject}-{alert_id}", "open", "critical", 0, now, now, None, None, None, 1,
        f"opened: {subject}", f"{subject} lags", (subject,), "", "", 0, None, None, None, None,
    )  # fmt: skip
    assert (await store.alerts.store_alerts(owner, [alert], [])).opened == 1
    await store.exports.release_export("alerts", owner)
    return alert


class Watch:
    """An evaluator, and the time that passes between its looks."""

    def __init__(self, store: Store, clock: FakeClock, events: EventBus, config: Config) -> None:
        self.store = store
        self.clock = clock
        self.evaluator = AlertEvaluator(store=store, config=config, clock=clock, events=events)

    async def look(self, after: float = LOOK_SECONDS) -> list[Alert]:
        """Returns the open alerts of the default namespace, oldest first."""
        await self.clock.advance(after)
        while await self.evaluator.run_once() == 0:
            pass
        return await self.alerts("open")

    async def alerts(self, *states: str, namespace: Namespace = DEFAULT) -> list[Alert]:
        found = await self.store.alerts.list_alerts(namespace, states, rule=None, after=None, limit=100)
        return found[::-1]

    async def messages(self) -> list[dict[str, Any]]:
        """Every message so far, in order."""
        found = await self.store.database.fetch(MESSAGES)
        return [msgspec.json.decode(row[0]) for row in found]
