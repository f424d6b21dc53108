"""`/v1/sources`: a change that names a version is made to that version only."""

from __future__ import annotations

import httpx
import pytest

from foliot.config import Config

SOURCE = {"kind": "webhook", "secret": "env:SHOP_SECRET", "task": "send_invoice"}
PATH = "/v1/sources/shop"


@pytest.fixture
def config(config: Config) -> Config:
    return Config(secret_references="env:SHOP_SECRET")


async def test_a_change_by_an_old_version_is_refused(client: httpx.AsyncClient) -> None:
    assert (await client.put(PATH, json=SOURCE, headers={"If-Match": "*"})).status_code == 412
    made = await client.put(PATH, json=SOURCE)
    tag = made.headers["ETag"]
    assert (await client.get(PATH)).headers["ETag"] == tag
    assert (await client.get(PATH, headers={"If-None-Match": tag})).status_code == 304
    changed = await client.put(PATH, json=SOURCE | {"priority": 5}, headers={"If-Match": tag})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    refused = await client.put(PATH, json=SOURCE | {"priority": 9}, headers={"If-Match": tag})
    assert refused.status_code == 412
    assert (await client.get(PATH)).json()["definition"]["priority"] == 5


async def test_an_equal_definition_makes_no_new_version(client: httpx.AsyncClient) -> None:
    first = await client.put(PATH, json=SOURCE)
    assert (await client.put(PATH, json=SOURCE)).json() == first.json()


async def test_a_secret_that_no_administrator_has_allowed_is_refused(client: httpx.AsyncClient) -> None:
    refused = await client.put(PATH, json=SOURCE | {"secret": "env:FOLIOT_DATABASE_URL"})
    assert refused.status_code == 422
    assert "secret_references" in refused.json()["detail"]
