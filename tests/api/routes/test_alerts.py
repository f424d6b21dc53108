"""Rules of alerts, alerts, silences and heartbeats over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.roles import Role
from foliot.store.store import Store
from tests.support.alerts import Watch, opened_alert
from tests.support.fake_clock import FakeClock
from tests.support.secured_app import client_at, secured_app
from tests.support.tokens import bearer, make_token

URL = "/v1/alert-rules/lag"
LAG = {"condition": {"kind": "queue_lag", "above": "30s"}, "scope": {"queue": "mail*"}, "severity": "critical"}


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    """It is Sunday, 2026-03-01, 12:00 UTC."""
    return fake_clock


@pytest.fixture
async def secured(store: Store) -> AsyncIterator[httpx.AsyncClient]:
    async with secured_app(store) as app, client_at(app, "127.0.0.1") as client:
        yield client


@pytest.fixture
async def tokens(store: Store) -> dict[str, dict[str, str]]:
    return {namespace: bearer(await make_token(store, Role.ADMIN, namespace)) for namespace in ("ours", "*")}


async def test_a_rule_is_created_changed_shown_and_deleted(client: httpx.AsyncClient, fake_clock: FakeClock) -> None:
    made = (await client.put(URL, json=LAG)).json()
    assert (made["name"], made["version"], made["updated_by"]) == ("lag", 1, "local")
    assert made["rule"]["condition"] == {"kind": "queue_lag", "above": "30s"}
    assert (made["rule"]["repeat"], made["rule"]["for"], made["rule"]["channels"]) == ("4h", None, [])
    await fake_clock.advance(60)
    assert (await client.put(URL, json=LAG)).json() == made
    changed = (await client.put(URL, json=LAG | {"for": "5m", "repeat": None})).json()
    assert (changed["version"], changed["updated_at"]) == (2, "2026-03-01T12:01:00Z")
    assert (await client.get(URL)).json() == changed
    assert (await client.get("/v1/alert-rules")).json() == {"items": [changed]}
    assert (await client.delete(URL)).status_code == 204
    assert [(await client.get(URL)).status_code, (await client.delete(URL)).status_code] == [404, 404]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("condition.kind", {"condition": {"kind": "queue_leg"}}),
        ("condition", {"condition": {}}),
        ("condition.above", {"condition": {"kind": "queue_lag", "above": "ten"}}),
        ("condition.over", {"condition": {"kind": "queue_lag", "over": "10s"}}),
        ("condition.below", {"condition": {"kind": "success_rate", "below": 101}}),
        ("scope.job", {"scope": {"job": "nightly"}}),
        ("scope.job", {"condition": {"kind": "not_started", "by": "06:00"}, "scope": {}}),
        ("condition.within", {"condition": {"kind": "not_started"}, "scope": {"job": "a"}}),
        ("condition.by", {"condition": {"kind": "not_started", "by": "6 pm"}, "scope": {"job": "a"}}),
        (
            "condition.timezone",
            {"condition": {"kind": "not_started", "by": "06:00", "timezone": "Mars"}, "scope": {"job": "a"}},
        ),
        ("channels", {"channels": ["nobody"]}),
        ("channels", {"channels": ["ops", "ops"]}),
        ("repeat", {"repeat": "often"}),
        ("for", {"for": "0s"}),
        ("severity", {"severity": "fatal"}),
    ],
)
async def test_a_rule_that_can_not_work_is_refused_with_its_field(
    client: httpx.AsyncClient, field: str, change: dict[str, Any]
) -> None:
    answer = await client.put(URL, json=LAG | change)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert (await client.get(URL)).status_code == 404


async def test_rules_about_the_installation_need_a_token_for_all_namespaces(
    secured: httpx.AsyncClient, tokens: dict[str, dict[str, str]]
) -> None:
    rule = {"condition": {"kind": "database"}}
    assert (await secured.put(URL, json=rule, headers=tokens["ours"])).status_code == 403
    assert (await secured.put(URL, json=LAG, headers=tokens["ours"])).status_code == 200
    assert (await secured.put(URL, json=rule, headers=tokens["*"])).status_code == 200


async def test_alerts_are_listed_acknowledged_and_resolved(
    client: httpx.AsyncClient, store: Store, fake_clock: FakeClock, events: EventBus, config: Config
) -> None:
    await client.put("/v1/alert-rules/workers", json={"condition": {"kind": "few_workers"}})
    watch = Watch(store, fake_clock, events, config)
    (alert,) = await watch.look()
    (listed,) = (await client.get("/v1/alerts")).json()["items"]
    assert (listed["id"], listed["rule"], listed["state"]) == (str(alert.id), "workers", "open")
    assert (await client.get("/v1/alerts?rule=other")).json()["items"] == []
    one = f"/v1/alerts/{alert.id}"
    noted = (await client.post(f"{one}/acknowledge", json={"note": "on it"})).json()["alert"]
    assert (noted["acknowledged_by"], noted["note"]) == ("local", "on it")
    first = noted["acknowledged_at"]
    await fake_clock.advance(5)
    assert (await client.post(f"{one}/acknowledge")).json()["alert"]["acknowledged_at"] == first
    await store.workers.register_worker(new_id(), "a worker", {"mail": 1}, [])
    await watch.look()
    assert (await client.get("/v1/alerts")).json()["items"] == []
    (resolved,) = (await client.get("/v1/alerts?state=resolved")).json()["items"]
    assert resolved["resolved_by"] is None
    assert (await client.post(f"{one}/resolve")).status_code == 409
    assert (await client.get(f"/v1/alerts/{new_id()}")).status_code == 404
    assert (await client.get("/v1/alerts?state=closed")).json()["field"] == "state"


async def test_lists_of_alerts_have_pages(client: httpx.AsyncClient, store: Store) -> None:
    made = [str((await opened_alert(store)).id) for _ in range(5)]
    page = (await client.get("/v1/alerts?limit=3")).json()
    rest = (await client.get(f"/v1/alerts?limit=3&after={page['next']}")).json()
    assert [alert["id"] for alert in page["items"] + rest["items"]] == made[::-1]
    assert rest["next"] is None


async def test_a_silence_has_a_reason_and_an_end(client: httpx.AsyncClient, fake_clock: FakeClock) -> None:
    await client.put(URL, json=LAG)
    until = (fake_clock.now() + timedelta(hours=1)).isoformat()
    made = await client.post("/v1/alert-silences", json={"rule": "lag", "reason": "it moves", "until": until})
    assert made.status_code == 201
    (listed,) = (await client.get("/v1/alert-silences")).json()["items"]
    assert listed == made.json()
    assert (listed["rule"], listed["reason"], listed["created_by"]) == ("lag", "it moves", "local")
    await fake_clock.advance(3601)
    assert (await client.get("/v1/alert-silences")).json()["items"] == []
    for field, body in (
        ("until", {"reason": "x", "until": until}),
        ("reason", {"reason": "", "until": "2099-01-01T00:00:00Z"}),
        ("subject", {"reason": "x", "until": "2099-01-01T00:00:00Z", "subject": "mail"}),
    ):
        assert (await client.post("/v1/alert-silences", json=body)).json()["field"] == field
    missing = {"reason": "x", "until": "2099-01-01T00:00:00Z", "rule": "none"}
    assert (await client.post("/v1/alert-silences", json=missing)).status_code == 404


async def test_a_heartbeat_must_be_declared_by_a_rule(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/heartbeats/backup")).status_code == 404
    await client.put(URL, json={"condition": {"kind": "heartbeat_silent", "heartbeat": "backup"}})
    assert (await client.get("/v1/heartbeats")).json()["items"] == [
        {"name": "backup", "at": None, "by": None, "number": 0}
    ]
    assert (await client.post("/v1/heartbeats/backup")).status_code == 204
    assert (await client.get("/v1/heartbeats")).json()["items"] == [
        {"name": "backup", "at": "2026-03-01T12:00:00Z", "by": "local", "number": 1}
    ]
    await client.delete(URL)
    assert (await client.post("/v1/heartbeats/backup")).status_code == 404


async def test_changes_of_rules_and_alerts_are_audited(secured: httpx.AsyncClient, tokens: dict[str, Any]) -> None:
    await secured.put(URL, json=LAG, headers=tokens["ours"])
    found = (await secured.get("/v1/audit", headers=tokens["ours"])).json()["items"]
    assert found[0]["action"] == "put_alert_rule"
