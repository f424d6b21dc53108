"""Signed webhooks become jobs."""

from __future__ import annotations

from typing import Any

import asyncpg
import httpx
import pytest

from foliot.clock import Clock
from foliot.config import Config
from foliot.model.webhook_signature import TOLERANCE_SECONDS, signature_of
from tests.support.fake_clock import FakeClock

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HOOK = "/v1/hooks/shop"


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
def config(config: Config) -> Config:
    return Config(secret_references="env:SHOP_*")


@pytest.fixture
async def hook(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SHOP_SECRET", SECRET)
    rule = {
        "kind": "webhook",
        "secret": "env:SHOP_SECRET",
        "task": "send_invoice",
        "payload": {"customer_id": "{{ message.customer }}"},
        "filter": 'message.type == "paid"',
    }
    assert (await client.put("/v1/sources/shop", json=rule)).status_code == 200
    return HOOK


PAID = b'{"type": "paid", "customer": 7}'


def signed(
    clock: FakeClock, body: bytes, *, message_id: str = "msg-1", late: float = 0, **headers: str
) -> dict[str, str]:
    timestamp = str(int(clock.now().timestamp() - late))
    signature = signature_of(SECRET, message_id=message_id, timestamp=timestamp, body=body)
    found = {"webhook-id": message_id, "webhook-timestamp": timestamp, "webhook-signature": signature}
    return found | {"content-type": "application/json"}


async def send(client: httpx.AsyncClient, body: bytes, headers: dict[str, str], path: str = HOOK) -> httpx.Response:
    return await client.post(path, content=body, headers=headers)


async def test_a_signed_message_becomes_one_job_however_often_it_is_sent(
    client: httpx.AsyncClient, hook: str, fake_clock: FakeClock, sql: asyncpg.Connection
) -> None:
    first = await send(client, PAID, signed(fake_clock, PAID))
    assert (first.status_code, first.json()["outcome"]) == (200, "submitted")
    await fake_clock.advance(60)
    again = await send(client, PAID, signed(fake_clock, PAID))
    assert again.json()["outcome"] == "repeated"
    other = await send(client, PAID, signed(fake_clock, PAID, message_id="msg-2"))
    assert other.json()["outcome"] == "submitted"
    run = (await client.get(f"/v1/runs/{first.json()['run_id']}")).json()
    assert (run["task"], run["payload"]) == ("send_invoice", {"customer_id": 7})
    assert await sql.fetchval("select count(*) from foliot.runs") == 2


async def test_a_message_that_the_filter_does_not_take_is_no_job(
    client: httpx.AsyncClient, hook: str, fake_clock: FakeClock, sql: asyncpg.Connection
) -> None:
    body = b'{"type": "refunded"}'
    assert (await send(client, body, signed(fake_clock, body))).json()["outcome"] == "ignored"
    assert await sql.fetchval("select count(*) from foliot.runs") == 0


async def test_a_message_that_is_wrong_is_kept_and_can_be_tried_again(
    client: httpx.AsyncClient, hook: str, fake_clock: FakeClock
) -> None:
    body = b'{"type": "paid"}'
    answer = (await send(client, body, signed(fake_clock, body))).json()
    assert (answer["outcome"], answer["reason"]) == ("dead", "message.customer: there is no 'customer'")
    assert (await send(client, body, signed(fake_clock, body))).json()["outcome"] == "dead"
    path = "/v1/sources/shop/dead-messages"
    (dead,) = (await client.get(path)).json()["items"]
    assert (dead["message_id"], dead["body"], dead["reason"]) == ("msg-1", body.decode(), answer["reason"])
    refused = await client.post(f"{path}/{dead['id']}/retry")
    assert (refused.status_code, refused.json()["field"]) == (422, "message")
    rule = (await client.get("/v1/sources/shop")).json()["definition"]
    rule["payload"] = {"customer_id": '{{ message.customer | default "0" }}'}
    assert (await client.put("/v1/sources/shop", json=rule)).json()["version"] == 2
    retried = (await client.post(f"{path}/{dead['id']}/retry")).json()
    assert (await client.get(f"/v1/runs/{retried['run_id']}")).json()["payload"] == {"customer_id": "0"}
    assert (await client.get(path)).json()["items"] == []
    assert (await client.post(f"{path}/{dead['id']}/retry")).status_code == 404


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-signature": "v1,bm90IGl0"},
        {"webhook-signature": ""},
        {"webhook-id": "msg-2"},
        {"webhook-id": ""},
        {"webhook-timestamp": "0"},
        {"webhook-timestamp": "soon"},
    ],
)
async def test_a_message_with_a_wrong_signature_is_refused_before_it_is_read(
    client: httpx.AsyncClient, hook: str, fake_clock: FakeClock, sql: asyncpg.Connection, change: dict[str, str]
) -> None:
    answer = await send(client, PAID, signed(fake_clock, PAID) | change)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    tampered = await send(client, PAID + b" ", signed(fake_clock, PAID))
    assert tampered.status_code == 404
    assert await sql.fetchval("select count(*) from foliot.runs") == 0


@pytest.mark.parametrize("late", [TOLERANCE_SECONDS + 2, -TOLERANCE_SECONDS - 2])
async def test_an_old_message_is_refused(
    client: httpx.AsyncClient, hook: str, fake_clock: FakeClock, late: float
) -> None:
    assert (await send(client, PAID, signed(fake_clock, PAID, late=late))).status_code == 404


async def test_several_signatures_may_be_given_while_a_secret_is_replaced(
    client: httpx.AsyncClient, hook: str, fake_clock: FakeClock
) -> None:
    headers = signed(fake_clock, PAID)
    headers["webhook-signature"] = f"v1,b2xk {headers['webhook-signature']}"
    assert (await send(client, PAID, headers)).json()["outcome"] == "submitted"


async def test_nobody_learns_which_hooks_exist(client: httpx.AsyncClient, hook: str, fake_clock: FakeClock) -> None:
    wrong = await send(client, PAID, signed(fake_clock, PAID) | {"webhook-signature": "v1,bm90"})
    for path in ("/v1/hooks/missing", "/v1/hooks/shop?namespace=other", "/v1/hooks/%00", "/v1/hooks/a%2Fb"):
        missing = await send(client, PAID, signed(fake_clock, PAID), path)
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
        assert missing.json()["detail"] in (wrong.json()["detail"], "Not Found")


async def test_secrets_are_never_shown(client: httpx.AsyncClient, hook: str) -> None:
    for path in ("/v1/sources", "/v1/sources/shop"):
        assert SECRET not in (await client.get(path)).text


WEBHOOK: dict[str, Any] = {"kind": "webhook", "secret": "env:SHOP_SECRET", "task": "send_invoice"}
REDIS: dict[str, Any] = {"kind": "redis", "url": "env:SHOP_URL", "topic": "orders", "task": "send_invoice"}


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (WEBHOOK | {"secret": None}, "secret"),
        (WEBHOOK | {"secret": SECRET}, "secret"),
        (WEBHOOK | {"secret": "env:OTHER"}, "secret"),
        (WEBHOOK | {"secret": "file:/etc/../etc/passwd"}, "secret"),
        (WEBHOOK | {"url": "env:SHOP_URL"}, "url"),
        (WEBHOOK | {"topic": "orders"}, "topic"),
        (REDIS | {"url": None}, "url"),
        (REDIS | {"url": "redis://:hunter2@127.0.0.1"}, "url"),
        (REDIS | {"url": "env:HOME"}, "url"),
        (REDIS | {"topic": None}, "topic"),
        (REDIS | {"secret": "env:SHOP_SECRET"}, "secret"),
        (REDIS | {"kind": "carrier pigeon"}, "kind"),
        (REDIS | {"task": "workflow"}, "task"),
        (REDIS | {"task": "shell"}, "payload"),
        (REDIS | {"payload": {"a": ["{{ massage.x }}"]}}, "payload.a[0]"),
        (REDIS | {"payload": {"a": "{{ message.x | shout }}"}}, "payload.a"),
        (REDIS | {"payload": {"a": "{{ message.x"}}, "payload.a"),
        (REDIS | {"key": "{{ run_id }}"}, "key"),
        (REDIS | {"filter": "message.x >"}, "filter"),
        (REDIS | {"filter": "params.x > 1"}, "filter"),
        (REDIS | {"more": 1}, "more"),
    ],
)
async def test_a_wrong_rule_is_refused_with_its_field(
    client: httpx.AsyncClient, rule: dict[str, Any], field: str
) -> None:
    answer = await client.put("/v1/sources/orders", json=rule)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert "hunter2" not in answer.text
    assert (await client.get("/v1/sources")).json() == {"items": []}


async def test_a_source_is_changed_and_deleted(client: httpx.AsyncClient) -> None:
    made = (await client.put("/v1/sources/orders", json=REDIS)).json()
    assert (made["name"], made["version"], made["definition"]) == ("orders", 1, REDIS)
    assert (await client.put("/v1/sources/orders", json=REDIS)).json()["version"] == 1
    assert (await client.put("/v1/sources/orders", json=REDIS | {"paused": True})).json()["version"] == 2
    assert (await client.delete("/v1/sources/orders")).status_code == 204
    for answer in (await client.delete("/v1/sources/orders"), await client.get("/v1/sources/orders")):
        assert answer.status_code == 404
