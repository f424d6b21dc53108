"""Channels of alerts over HTTP: checks, secrets that are never shown, and the test button."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from foliot.alerts.channels.base import ChannelError
from foliot.alerts.channels.stored import StoredChannels
from foliot.clock import SystemClock
from foliot.config import Config
from foliot.model.roles import Role
from foliot.store.store import Store
from tests.support.alert_messages import MESSAGE
from tests.support.http import Answering, answer, answering
from tests.support.secured_app import client_at, secured_app
from tests.support.smtp import PASSWORD, USER, smtp_server
from tests.support.tokens import bearer, make_token

ROOT = "/v1/alert-channels"
URL = f"{ROOT}/ops"
KEY, NEW_KEY = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
SIGNING = "whsec_" + base64.b64encode(b"k" * 32).decode()
MAIL: dict[str, Any] = {
    "kind": "email", "host": "mail.invalid", "from": "foliot@example.org", "to": ["ops@example.org"],
}  # fmt: skip
HOOK: dict[str, Any] = {"kind": "webhook", "url": "https://hooks.invalid/x", "signing_secret": SIGNING}
SLACK = "https://hooks.invalid/services/T00/B00/sEcReT"
SETTINGS: dict[str, Any] = {
    "secret_key": KEY,
    "secret_references": "env:ALERTS_*,file:/run/secrets/*",
    "http_allow_hosts": "localhost",
}


@pytest.fixture
async def client(store: Store) -> AsyncIterator[httpx.AsyncClient]:
    async with secured_app(store, is_open=True, **SETTINGS) as app, client_at(app, "127.0.0.1") as client:
        yield client


@pytest.fixture
async def server() -> AsyncIterator[Answering]:
    async with answering() as found:
        yield found


async def refused(client: httpx.AsyncClient, body: dict[str, Any]) -> tuple[str, str]:
    """The field and the text."""
    answered = await client.put(URL, json=body)
    assert answered.status_code == 422, answered.text
    return answered.json()["field"], answered.json()["detail"]


async def test_a_channel_is_created_changed_shown_and_deleted(client: httpx.AsyncClient) -> None:
    made = await client.put(URL, json=MAIL)
    assert made.status_code == 200, made.text
    assert made.json()["name"] == "ops"
    assert made.json()["version"] == 1
    assert made.json()["channel"] == MAIL | {
        "port": None, "security": "starttls", "username": None, "password": None, "title": None, "body": None,
    }  # fmt: skip
    changed = await client.put(URL, json=MAIL | {"port": 2525}, headers={"If-Match": made.headers["etag"]})
    assert (changed.json()["version"], changed.json()["channel"]["port"]) == (2, 2525)
    for headers in ({"If-Match": made.headers["etag"]}, {"If-None-Match": "*"}):
        assert (await client.put(URL, json=MAIL, headers=headers)).status_code == 412
    assert (await client.put(f"{ROOT}/new", json=MAIL, headers={"If-None-Match": "*"})).status_code == 200
    assert (await client.put(f"{ROOT}/newer", json=MAIL, headers={"If-Match": '"1"'})).status_code == 412
    assert [one["name"] for one in (await client.get(ROOT)).json()["items"]] == ["new", "ops"]
    assert (await client.get(URL)).json() == changed.json()
    assert (await client.delete(URL)).status_code == 204
    for gone in (await client.get(URL), await client.delete(URL), await client.post(f"{URL}/test")):
        assert (gone.status_code, gone.json()["code"]) == (404, "not_found")


async def test_a_channel_that_a_rule_names_is_not_deleted(client: httpx.AsyncClient) -> None:
    await client.put(URL, json=MAIL)
    rule = {"condition": {"kind": "run_failed"}, "channels": ["ops"]}
    assert (await client.put("/v1/alert-rules/failures", json=rule)).status_code == 200
    refused = await client.delete(URL)
    assert (refused.status_code, "the alert rule 'failures' names" in refused.json()["detail"]) == (409, True)
    assert (await client.get(URL)).status_code == 200
    assert (await client.put("/v1/alert-rules/failures", json=rule | {"channels": []})).status_code == 200
    assert (await client.delete(URL)).status_code == 204


@pytest.mark.parametrize(
    ("body", "field", "text"),
    [
        ({"kind": "pigeon"}, "kind", "pigeon"),
        (MAIL | {"colour": "red"}, "colour", "no such field"),
        (MAIL | {"host": "a b"}, "host", "must be a host name"),
        (MAIL | {"to": []}, "to", "must not be empty"),
        (MAIL | {"to": ["ops@example.org", "nobody"]}, "to[1]", "must be an email address"),
        (MAIL | {"from": "a@b\r\nBcc: c@d"}, "from", "must be an email address"),
        (MAIL | {"username": "u"}, "password", "belong together"),
        (MAIL | {"username": "u", "password": "p", "security": "none"}, "security", "plain text"),
        (MAIL | {"title": "{{ payload.x }}"}, "title", "there is no name 'payload'"),
        (MAIL | {"body": "{{ title | upper }}"}, "body", "there is no filter 'upper'"),
        (MAIL | {"body": "{{ title"}, "body", "not closed"),
        (MAIL | {"host": "127.0.0.1"}, "host", "not public"),
        (HOOK | {"url": "http://169.254.169.254/latest"}, "url", "not public"),
        (HOOK | {"url": "http://[::ffff:10.0.0.1]/"}, "url", "not public"),
        (HOOK | {"url": "http://2130706433/"}, "url", "not public"),
        (HOOK | {"url": "ftp://example.org"}, "url", "only http and https"),
        (HOOK | {"url": "https://user:pw@example.org"}, "url", "no user or password"),
        (HOOK | {"signing_secret": "short"}, "signing_secret", "whsec_"),
        (HOOK | {"signing_secret": "***"}, "signing_secret", "there is none"),
        ({"kind": "slack", "webhook_url": "http://10.0.0.1/sEcReT"}, "webhook_url", "not public"),
        ({"kind": "slack", "webhook_url": "sEcReT"}, "webhook_url", "only http and https"),
        ({"kind": "slack", "webhook_url": "a\nb"}, "webhook_url", "printable ASCII"),
        ({"kind": "slack", "webhook_url": "env:HOME"}, "webhook_url", "secret_references"),
        ({"kind": "slack", "webhook_url": "file:/etc/passwd"}, "webhook_url", "secret_references"),
        ({"kind": "slack", "webhook_url": "file:/run/secrets/../passwd"}, "webhook_url", "secret_references"),
        ({"kind": "slack", "webhook_url": "file:/run/secrets/a/b"}, "webhook_url", "secret_references"),
        ({"kind": "slack", "webhook_url": "env:ALERTS_"}, "webhook_url", "secret_references"),
        ({"kind": "apprise", "url": "json://127.0.0.1"}, "url", "not a public address"),
        ({"kind": "pagerduty", "routing_key": "k", "api_url": "http://127.0.0.1:1"}, "api_url", "not public"),
    ],
)
async def test_a_bad_channel_is_refused_with_the_field_named(
    client: httpx.AsyncClient, body: dict[str, Any], field: str, text: str
) -> None:
    found, detail = await refused(client, body)
    assert found == field
    assert text in detail
    assert "sEcReT" not in detail
    assert (await client.get(ROOT)).json() == {"items": []}


async def test_a_secret_is_encrypted_and_never_shown(client: httpx.AsyncClient, sql: Any) -> None:
    made = await client.put(URL, json={"kind": "slack", "webhook_url": SLACK})
    answers = [made, await client.get(URL), await client.get(ROOT), await client.get("/v1/audit")]
    assert made.json()["channel"]["webhook_url"] == "***"
    stored = await sql.fetchrow("select row_to_json(c)::text from foliot.alert_channels as c")
    for text in (*(one.text for one in answers), stored[0]):
        assert "sEcReT" not in text
    # Equal secrets do not look equal.
    before = await sql.fetchval("select secrets from foliot.alert_channels")
    await client.put(URL, json={"kind": "slack", "webhook_url": SLACK})
    assert await sql.fetchval("select secrets from foliot.alert_channels") != before


async def test_three_stars_keep_the_secret_unless_the_destination_changes(
    client: httpx.AsyncClient, server: Answering
) -> None:
    server.answers["/hook"] = answer()
    hook = HOOK | {"url": f"http://localhost:{server.port}/hook", "authorization": "Bearer first"}
    await client.put(URL, json=hook)
    shown = (await client.get(URL)).json()["channel"]
    again = await client.put(URL, json=shown | {"title": "Other", "authorization": "Bearer second"})
    assert again.status_code == 200, again.text
    assert (await client.post(f"{URL}/test")).json() == {"is_delivered": True, "error": None}
    (asked,) = server.asked
    assert asked.headers["authorization"] == "Bearer second"
    assert asked.headers["webhook-signature"].startswith("v1,")
    elsewhere = shown | {"url": "https://evil.invalid/"}
    field, detail = await refused(client, elsewhere)
    assert (field, "destination has changed" in detail) == ("signing_secret", True)
    assert (await refused(client, {"kind": "slack", "webhook_url": "***"}))[0] == "webhook_url"


async def test_without_a_key_only_references_are_stored(store: Store) -> None:
    async with (
        secured_app(store, is_open=True, secret_references="env:ALERTS_*") as app,
        client_at(app, "127.0.0.1") as client,
    ):
        field, detail = await refused(client, {"kind": "slack", "webhook_url": SLACK})
        assert (field, "no secret_key" in detail) == ("webhook_url", True)
        made = await client.put(URL, json={"kind": "slack", "webhook_url": "env:ALERTS_SLACK"})
        assert made.json()["channel"]["webhook_url"] == "env:ALERTS_SLACK"


async def test_a_missing_library_is_named(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foliot.alerts.secrets.find_spec", lambda name: None)
    monkeypatch.setattr("foliot.alerts.channels.apprise.find_spec", lambda name: None)
    field, detail = await refused(client, {"kind": "slack", "webhook_url": SLACK})
    assert (field, "pip install 'foliot[alerts]'" in detail) == ("webhook_url", True)
    monkeypatch.undo()
    monkeypatch.setattr("foliot.alerts.channels.apprise.find_spec", lambda name: None)
    field, detail = await refused(client, {"kind": "apprise", "url": "ntfy://topic"})
    assert (field, "pip install 'foliot[alerts]'" in detail) == ("kind", True)


async def test_references_are_read_where_the_message_is_sent(
    client: httpx.AsyncClient, store: Store, server: Answering, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = f"/services/{tmp_path.name}"
    await client.put(URL, json={"kind": "slack", "webhook_url": "env:ALERTS_SLACK"})
    missing = (await client.post(f"{URL}/test")).json()
    assert (missing["is_delivered"], "ALERTS_SLACK is not set" in missing["error"]) == (False, True)
    server.answers[path] = answer()
    monkeypatch.setenv("ALERTS_SLACK", f"http://localhost:{server.port}{path}")
    assert (await client.post(f"{URL}/test")).json()["is_delivered"]
    # The scheduler has a list of its own, and a file that changes is read again.
    file = tmp_path / "slack"
    config = Config(secret_references=f"file:{tmp_path}/*", http_allow_private=True)
    channels = StoredChannels(store=store, config=config, clock=SystemClock())
    with pytest.raises(ChannelError, match="secret_references"):
        await channels.open("ops")
    async with (
        secured_app(store, is_open=True, secret_references=f"file:{tmp_path}/*") as app,
        client_at(app, "127.0.0.1") as other,
    ):
        assert (await other.put(URL, json={"kind": "slack", "webhook_url": f"file:{file}"})).status_code == 200
    with pytest.raises(ChannelError, match="can't be read"):
        await channels.open("ops")
    file.write_text(f"{server.url}{path}\n")
    await (await channels.open("ops")).send(MESSAGE, "d")
    assert len(server.asked) == 2


async def test_keys_are_rotated(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    await client.put(URL, json={"kind": "slack", "webhook_url": SLACK})
    await client.put(f"{ROOT}/mail", json=MAIL)
    stores = {
        keys: StoredChannels(store=store, config=Config(secret_key=keys), clock=SystemClock())
        for keys in (f"{NEW_KEY},{KEY}", NEW_KEY)
    }
    await stores[f"{NEW_KEY},{KEY}"].open("ops")
    with pytest.raises(ChannelError, match="has no longer the key"):
        await stores[NEW_KEY].open("ops")
    async with (
        secured_app(store, is_open=True, secret_key=f"{NEW_KEY},{KEY}") as app,
        client_at(app, "127.0.0.1") as rotating,
    ):
        assert (await rotating.post(f"{ROOT}/seal")).json() == {"changed": 1}
        assert (await rotating.post(f"{ROOT}/seal")).json() == {"changed": 0}
    await stores[NEW_KEY].open("ops")
    assert (await client.post(f"{ROOT}/seal")).status_code == 409


async def test_a_sealed_secret_can_not_be_moved_to_another_channel(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    for name in ("ops", "other"):
        await client.put(f"{ROOT}/{name}", json={"kind": "slack", "webhook_url": SLACK})
    await sql.execute(
        "update foliot.alert_channels set secrets = (select secrets from foliot.alert_channels where name = 'ops') "
        "where name = 'other'"
    )
    channels = StoredChannels(store=store, config=Config(secret_key=KEY), clock=SystemClock())
    await channels.open("ops")
    with pytest.raises(ChannelError, match="was changed in the database"):
        await channels.open("other")


async def test_the_test_button_says_what_the_other_side_said(client: httpx.AsyncClient, server: Answering) -> None:
    async with smtp_server() as mailbox:
        await client.put(URL, json=MAIL | {"host": "localhost", "port": mailbox.port, "security": "none"})
        assert (await client.post(f"{URL}/test")).json() == {"is_delivered": True, "error": None}
        mailbox.answer = "554 5.7.1 spam"
        said = (await client.post(f"{URL}/test")).json()
    assert said["is_delivered"] is False
    assert "554 5.7.1 spam" in said["error"]
    (mail,) = mailbox.mails
    assert mail["subject"] == "[info] Test: The channel ops works"
    assert "local tested the alert channel ops." in mail.get_content()
    down = (await client.post(f"{URL}/test")).json()
    assert down["is_delivered"] is False


async def test_a_login_needs_tls_and_both_parts(client: httpx.AsyncClient) -> None:
    login = {"username": USER, "password": PASSWORD}
    made = await client.put(URL, json=MAIL | login)
    assert made.json()["channel"]["password"] == "***"
    assert PASSWORD not in made.text


async def test_channels_belong_to_a_namespace(store: Store) -> None:
    async with secured_app(store, is_open=False, **SETTINGS) as app, client_at(app, "10.0.0.1") as client:
        ours = bearer(await make_token(store, Role.OPERATOR, "ours", name="ours"))
        theirs = bearer(await make_token(store, Role.OPERATOR, "theirs", name="theirs"))
        viewer = bearer(await make_token(store, Role.VIEWER, "ours", name="viewer"))
        assert (await client.put(URL, json=MAIL, headers=ours)).status_code == 200
        assert (await client.get(URL, headers=theirs)).status_code == 404
        assert (await client.post(f"{URL}/test", headers=theirs)).status_code == 404
        assert (await client.get(URL, headers=viewer)).status_code == 200
        for method, url in (("PUT", URL), ("DELETE", URL), ("POST", f"{URL}/test"), ("POST", f"{ROOT}/seal")):
            assert (await client.request(method, url, json=MAIL, headers=viewer)).status_code == 403


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("secret_key", "c2hvcnQ="), ("secret_key", f"{KEY},nonsense"), ("secret_references", "env:*"),
        ("secret_references", "env:FOLIOT_DATABASE_URL"), ("secret_references", "file:relative"),
        ("secret_references", "file:/a/../b"), ("secret_references", "file:/*"), ("secret_references", "everything"),
    ],
)  # fmt: skip
def test_a_bad_setting_is_refused(setting: str, value: str) -> None:
    with pytest.raises(ValueError, match=setting) as raised:
        Config(**{setting: value})  # type: ignore[arg-type]
    assert setting != "secret_key" or value not in str(raised.value)
