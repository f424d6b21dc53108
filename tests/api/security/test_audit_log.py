"""Tokens with the same name in several namespaces are distinguished in the audit log, on the command line, and when one
is revoked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from foliot.api.app import Application
from foliot.model.roles import Role
from foliot.model.tokens import token_id_of
from foliot.store.store import Store
from tests.support.processes import FoliotProcess
from tests.support.secured_app import client_at, secured_app, serving
from tests.support.tokens import bearer, make_token

NAMESPACES = ("team-a", "team-b", "*")


@pytest.fixture
async def app(store: Store) -> AsyncIterator[Application]:
    await store.workers.announce_tasks({"send": "mail", "team-a/send": "team-a/mail", "team-b/send": "team-b/mail"})
    async with secured_app(store) as app:
        yield app


@pytest.fixture
async def client(app: Application) -> AsyncIterator[httpx.AsyncClient]:
    async with client_at(app, "192.0.2.1") as client:
        yield client


@pytest.fixture
async def ids(store: Store, client: httpx.AsyncClient) -> dict[str, str]:
    """The ids of three tokens named `ci`. Each has created a job in namespace team-a or in its own."""
    found = {}
    for namespace in NAMESPACES:
        token = await make_token(store, Role.ADMIN, namespace, name="ci")
        headers = bearer(token) | ({"Foliot-Namespace": "team-a"} if namespace == "*" else {})
        answer = await client.post("/v1/jobs", json={"task": "send"}, headers=headers)
        assert answer.status_code == 201, answer.text
        found[namespace] = token_id_of(token) or ""
    return found


@pytest.fixture
async def admin(store: Store) -> dict[str, str]:
    return bearer(await make_token(store, name="root"))


async def audit(client: httpx.AsyncClient, admin: dict[str, str], **query: str) -> list[dict[str, Any]]:
    answer = await client.get("/v1/audit", params=query, headers=admin)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items[::-1]


async def test_the_record_names_the_namespace_and_the_id_of_a_token(
    client: httpx.AsyncClient, admin: dict[str, str], ids: dict[str, str]
) -> None:
    found = [
        (one["actor"], one["actor_namespace"], one["token_id"], one["namespace"]) for one in await audit(client, admin)
    ]
    assert found == [
        ("ci", "team-a", ids["team-a"], "team-a"),
        ("ci", "team-b", ids["team-b"], "team-b"),
        ("ci", "*", ids["*"], "team-a"),
    ]
    assert len(await audit(client, admin, actor="ci")) == 3
    (one,) = await audit(client, admin, actor="ci", token=ids["*"])
    assert one["actor_namespace"] == "*"
    assert await audit(client, admin, token="0" * 16) == []


async def test_entries_of_earlier_versions_get_the_namespace_from_their_tokens(
    client: httpx.AsyncClient, admin: dict[str, str], ids: dict[str, str], sql: Any
) -> None:
    await sql.execute("alter table foliot.audit disable trigger user")
    await sql.execute("update foliot.audit set actor_namespace = null")
    assert [one["actor_namespace"] for one in await audit(client, admin)] == list(NAMESPACES)


async def test_an_anonymous_caller_is_distinguished_from_a_token_of_that_name(
    client: httpx.AsyncClient, store: Store
) -> None:
    admin = bearer(await make_token(store, name="anonymous"))
    assert (await client.post("/v1/pause", json={}, headers=admin)).status_code == 200
    assert (await client.post("/v1/pause", json={})).status_code == 401
    token, nobody = await audit(client, admin, actor="anonymous")
    assert (token["actor_namespace"], nobody["actor_namespace"], nobody["token_id"]) == ("*", None, None)


async def test_a_name_shared_by_several_tokens_revokes_none_of_them(
    client: httpx.AsyncClient, admin: dict[str, str], ids: dict[str, str], store: Store
) -> None:
    refused = await client.delete("/v1/tokens/ci", headers=admin)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert all(f"{token_id} in {namespace}" in refused.json()["detail"] for namespace, token_id in ids.items())
    assert all(token.is_valid for token in await store.tokens.list_tokens(None))
    # A caller who can see only one of them means that one. An id always means one token, even if a name looks like it.
    team = bearer(await make_token(store, Role.ADMIN, "team-b", name=ids["team-a"]))
    assert (await client.delete("/v1/tokens/ci", headers=team)).json()["id"] == ids["team-b"]
    assert (await client.delete(f"/v1/tokens/{ids['team-a']}", headers=admin)).json()["name"] == "ci"
    assert {token.id for token in await store.tokens.list_tokens(None) if token.revoked_at} == {
        ids["team-a"],
        ids["team-b"],
    }
    revoked = [one["target"] for one in await audit(client, admin, action="revoke_token") if one["status"] == 200]
    assert revoked == [ids["team-b"], ids["team-a"]]
    assert (await client.delete("/v1/tokens/ci", headers=admin)).json()["id"] == ids["*"]


async def test_a_token_shows_the_token_that_created_it(client: httpx.AsyncClient, store: Store) -> None:
    for namespace in NAMESPACES:
        maker = await make_token(store, Role.ADMIN, namespace, name="maker")
        made = await client.post(
            "/v1/tokens", json={"name": "made", "role": "viewer", "namespace": namespace}, headers=bearer(maker)
        )
        assert (made.json()["created_by"], made.json()["created_by_id"]) == ("maker", token_id_of(maker))


@pytest.mark.process
async def test_the_command_line_shows_the_acting_token(app: Application, store: Store, ids: dict[str, str]) -> None:
    root = await make_token(store, name="root")
    async with serving(app) as url:
        around = {"FOLIOT_URL": url, "FOLIOT_TOKEN": root}
        async with FoliotProcess("audit", environment=around) as shown:
            assert await shown.wait() == 0, shown.lines
        for namespace, token_id in ids.items():
            assert [line for line in shown.lines if f"{namespace}/ci " in line and token_id in line], shown.lines
        async with FoliotProcess("audit", "--token", ids["team-b"], environment=around) as one:
            assert await one.wait() == 0, one.lines
        assert [line.split()[1:3] for line in one.lines[1:]] == [["team-b/ci", ids["team-b"]]]
        async with FoliotProcess("token", "revoke", "ci", environment=around) as refused:
            assert await refused.wait() == 1
        assert ids["team-b"] in refused.lines[-1]
