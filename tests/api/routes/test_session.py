"""Signing a browser in and out: the cookie, its expiry, and requests that must not use it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from foliot.api.security.authentication import REMEMBERED_SECONDS, WRONG_BURST
from foliot.model.roles import Role
from foliot.model.session import COOKIE
from foliot.store.store import Store
from tests.support.secured_app import secured_app
from tests.support.tokens import bearer, make_token
from tests.support.waiting import until

OUR_PAGE = {"Sec-Fetch-Site": "same-origin", "Foliot-CSRF": "1"}


@pytest.fixture
async def app(store: Store) -> AsyncIterator[FastAPI]:
    async with secured_app(store) as app:
        yield app


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    # HTTPS, because the client returns no `Secure` cookie over plain HTTP.
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://foliot.example") as client:
        yield client


async def sign_in(client: httpx.AsyncClient, token: str) -> httpx.Response:
    answer = await client.post("/v1/session", json={"token": token}, headers=OUR_PAGE)
    assert answer.status_code == 201, answer.text
    return answer


async def test_a_browser_signs_in_works_and_signs_out(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    before = (await client.get("/v1/session")).json()
    assert (before["mode"], before["is_signed_in"], before["permissions"]) == ("token", False, [])
    token = await make_token(store, Role.OPERATOR, "team", name="ann")
    answer = await sign_in(client, token)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert all(word in cookie for word in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/", "Max-Age=604800"))
    assert "Domain" not in cookie
    shown = (await client.get("/v1/session")).json()
    assert (shown["is_signed_in"], shown["name"], shown["role"], shown["scope"]) == (True, "ann", "operator", "team")
    assert shown["permissions"] == ["drain", "operate", "submit", "view"]
    assert shown["ends_at"] == answer.json()["ends_at"] is not None
    paused = await client.post("/v1/queues/mail/pause", headers=OUR_PAGE)
    assert paused.status_code == 200, paused.text
    assert (await client.delete("/v1/session", headers=OUR_PAGE)).status_code == 204
    assert await sql.fetchval("select count(*) from foliot.sessions") == 0
    after = await client.get("/v1/session")
    assert after.json()["is_signed_in"] is False
    actions = [tuple(row) for row in await sql.fetch("select actor, action, status from foliot.audit order by at, id")]
    assert actions == [
        ("ann", "create_session", 201), ("ann", "pause_queue", 200), ("ann", "delete_session", 204)
    ]  # fmt: skip


async def test_the_database_holds_neither_the_cookie_nor_the_token(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    token = await make_token(store)
    await sign_in(client, token)
    stored = " ".join(str(tuple(row)) for row in await sql.fetch("select * from foliot.sessions"))
    assert client.cookies[COOKIE] not in stored
    assert token not in stored


async def test_revoking_the_token_ends_its_sessions(client: httpx.AsyncClient, store: Store) -> None:
    token = await make_token(store, Role.VIEWER, "default", name="gone")
    await sign_in(client, token)
    assert (await client.get("/v1/runs")).status_code == 200
    await store.tokens.revoke_token(token.split("_")[1])

    async def is_refused() -> bool:
        return (await client.get("/v1/runs")).status_code == 401

    await until(is_refused, seconds=REMEMBERED_SECONDS + 10)
    shown = await client.get("/v1/session")
    assert (shown.status_code, shown.json()["is_signed_in"]) == (200, False)
    assert "Max-Age=0" in shown.headers["set-cookie"]


@pytest.mark.parametrize(
    "change",
    [
        "expires_at = clock_timestamp()",
        "used_at = clock_timestamp() - interval '12 hours'",
    ],
    ids=["seven days", "twelve idle hours"],
)
async def test_a_session_ends_by_age(client: httpx.AsyncClient, store: Store, sql: Any, change: str) -> None:
    await sign_in(client, await make_token(store))
    await sql.execute(f"update foliot.sessions set {change}")
    assert (await client.get("/v1/runs")).status_code == 401
    assert await store.sessions.forget_sessions() == (1 if "expires" in change else 0)


async def test_a_session_in_use_stays(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    await sign_in(client, await make_token(store))
    await sql.execute("update foliot.sessions set used_at = used_at - interval '11 hours'")
    assert (await client.get("/v1/runs")).status_code == 200
    assert await sql.fetchval("select used_at > clock_timestamp() - interval '1 minute' from foliot.sessions")


@pytest.mark.parametrize(
    ("headers", "is_allowed"),
    [
        (OUR_PAGE, True),
        ({"Foliot-CSRF": "1"}, False),
        ({"Sec-Fetch-Site": "same-origin"}, False),
        ({"Sec-Fetch-Site": "same-site", "Foliot-CSRF": "1"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Foliot-CSRF": "1"}, False),
        ({"Sec-Fetch-Site": "none", "Foliot-CSRF": "1"}, False),
    ],
    ids=["our page", "no site", "no header", "sibling", "foreign", "typed"],
)
async def test_a_change_with_a_session_must_come_from_our_own_page(
    client: httpx.AsyncClient, store: Store, headers: dict[str, str], is_allowed: bool
) -> None:
    await sign_in(client, await make_token(store))
    answer = await client.post("/v1/queues/mail/pause", headers=headers)
    assert answer.status_code == (200 if is_allowed else 403), answer.text
    if not is_allowed:
        assert answer.json()["code"] == "cross_site"
    # A token in a header needs no such check, because browsers do not attach it by themselves.
    token = bearer(await make_token(store))
    assert (await client.post("/v1/queues/mail/resume", headers=headers | token)).status_code == 200


async def test_foreign_pages_read_nothing_with_a_session(client: httpx.AsyncClient, store: Store) -> None:
    await sign_in(client, await make_token(store))
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}
    assert (await client.get("/v1/runs", headers=foreign)).status_code == 403
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert (await client.get("/v1/runs", headers=link)).status_code == 200


async def test_a_session_id_is_not_accepted_as_a_token(client: httpx.AsyncClient, store: Store) -> None:
    await sign_in(client, await make_token(store))
    session_id = client.cookies[COOKIE]
    client.cookies.clear()
    assert (await client.get("/v1/runs", headers=bearer(session_id))).status_code == 401


async def test_wrong_tokens_do_not_sign_in_and_are_limited(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    good = await make_token(store)
    await store.tokens.revoke_token(good.split("_")[1])
    statuses = [
        (await client.post("/v1/session", json={"token": good})).status_code for _ in range(int(WRONG_BURST) + 1)
    ]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    malformed = await client.post("/v1/session", json={"token": "foliot_x"})
    assert (malformed.status_code, malformed.json()["field"]) == (422, "token")
    assert await sql.fetchval("select count(*) from foliot.sessions") == 0


@pytest.mark.parametrize(
    ("url", "origin", "is_possible"),
    [
        ("https://foliot.example", None, True),
        ("http://foliot.example", None, False),
        ("http://foliot.example", "http://foliot.example", False),
        ("http://127.0.0.1:8000", "http://foliot.example", False),
        ("http://foliot.internal", "https://foliot.example", True),
        ("http://localhost:8000", None, True),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000", True),
    ],
    ids=["tls", "plain", "plain page", "plain page by a proxy", "tls at a proxy", "this machine", "its page"],
)
async def test_over_plain_http_the_reason_is_given(
    app: FastAPI, store: Store, url: str, origin: str | None, is_possible: bool
) -> None:
    token, headers = await make_token(store), {"Origin": origin} if origin else {}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=url, headers=headers) as client:
        assert ((await client.get("/v1/session")).json()["sign_in_refusal"] is None) == is_possible
        answer = await client.post("/v1/session", json={"token": token})
        assert answer.status_code == (201 if is_possible else 403), answer.text
        if not is_possible:
            assert answer.json()["code"] == "plain_http"
            assert "HTTPS" in answer.json()["detail"]


async def test_in_local_mode_nobody_signs_in(store: Store, sql: Any) -> None:
    async with (
        secured_app(store, is_open=True) as app,
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:8000") as client,
    ):
        shown = (await client.get("/v1/session")).json()
        assert (shown["mode"], shown["is_signed_in"], shown["name"], shown["scope"]) == ("open", True, "local", "*")
        assert "administer" in shown["permissions"]
        answer = await sign_in(client, await make_token(store))
        assert "set-cookie" not in answer.headers
        assert await sql.fetchval("select count(*) from foliot.sessions") == 0


async def test_namespaces_of_the_token_are_listed(client: httpx.AsyncClient, store: Store) -> None:
    await store.workers.announce_tasks({"send": "mail", "ops/shell": "ops/default"})
    one = await make_token(store, Role.VIEWER, "team")
    over_all = await make_token(store, Role.VIEWER)

    async def names(token: str) -> list[str]:
        items = (await client.get("/v1/namespaces", headers=bearer(token))).json()["items"]
        return [item["name"] for item in items]

    assert await names(one) == ["team"]
    assert await names(over_all) == ["default", "ops", "team"]
