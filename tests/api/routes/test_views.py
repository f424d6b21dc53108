"""`/v1/views`: saved views of one person, and of a namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from foliot.model.roles import Role
from foliot.store.store import Store
from foliot.store.views import MOST
from tests.support.secured_app import client_at, secured_app
from tests.support.tokens import bearer, make_token


@pytest.fixture
async def client(store: Store) -> AsyncIterator[httpx.AsyncClient]:
    async with secured_app(store) as app, client_at(app, "10.0.0.1") as client:
        yield client


async def names(client: httpx.AsyncClient, token: str) -> list[tuple[str, bool]]:
    answer = await client.get("/v1/views", headers=bearer(token))
    return [(one["name"], one["is_shared"]) for one in answer.json()["items"]]


async def put(client: httpx.AsyncClient, token: str, name: str, *, shared: bool = False, search: str = "q=x") -> int:
    view = {"page": "runs", "name": name, "search": search, "is_shared": shared}
    return (await client.put("/v1/views", json=view, headers=bearer(token))).status_code


async def test_views_are_ones_own_unless_they_are_shared(client: httpx.AsyncClient, store: Store) -> None:
    ann = await make_token(store, Role.OPERATOR, "team", name="ann")
    bob = await make_token(store, Role.VIEWER, "team", name="bob")
    other = await make_token(store, Role.OPERATOR, "else", name="ann")
    assert await put(client, ann, "mine") == 200
    assert await put(client, ann, "ours", shared=True) == 200
    assert await put(client, bob, "his") == 200
    assert await put(client, bob, "ours", shared=True) == 403
    assert await names(client, ann) == [("mine", False), ("ours", True)]
    assert await names(client, bob) == [("his", False), ("ours", True)]
    assert await names(client, other) == []
    refused = await client.delete("/v1/views?page=runs&name=ours&shared=1", headers=bearer(bob))
    assert refused.status_code == 403
    for _ in range(2):
        assert (await client.delete("/v1/views?page=runs&name=mine", headers=bearer(ann))).status_code == 204
    assert await names(client, ann) == [("ours", True)]
    replacement = await make_token(store, Role.VIEWER, "team", name="bob the second")
    assert await names(client, replacement) == [("ours", True)]


async def test_saving_again_replaces_and_the_number_is_limited(client: httpx.AsyncClient, store: Store) -> None:
    ann = await make_token(store, Role.VIEWER, "team", name="ann")
    for number in range(MOST):
        assert await put(client, ann, f"view {number}") == 200
    assert await put(client, ann, "one too many") == 409
    assert await put(client, ann, "view 0", search="q=changed") == 200
    views = (await client.get("/v1/views", headers=bearer(ann))).json()["items"]
    assert (len(views), views[0]["search"], views[0]["updated_by"]) == (MOST, "q=changed", "ann")
