"""`/v1/schedulers`, `/v1/health/database` and `/v1/settings`: for those who look after all of it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from foliot.config import Config, sources_of
from foliot.model.ids import new_id
from foliot.model.roles import Role
from foliot.store.store import Store
from tests.support.secured_app import client_at, secured_app
from tests.support.tokens import bearer, make_token

PATHS = {"/v1/schedulers": Role.VIEWER, "/v1/health/database": Role.OPERATOR, "/v1/settings": Role.ADMIN}


async def test_nodes_are_shown_with_their_shards_and_the_clock(client: httpx.AsyncClient, store: Store) -> None:
    node = new_id()
    await store.shards.beat_scheduler(node, "host:1")
    await store.shards.take_shards(node)
    shown = (await client.get("/v1/schedulers")).json()
    assert [(one["id"], one["name"], one["shards"], one["is_alive"]) for one in shown["items"]] == [
        (str(node), "host:1", 100, True)
    ]
    assert (shown["shards"], shown["owned_shards"]) == (100, 100)
    assert abs(shown["clock_difference_seconds"]) < 5


async def test_the_database_tells_sizes_and_asks_for_help(
    client: httpx.AsyncClient, sql: Any, database_url: str
) -> None:
    shown = (await client.get("/v1/health/database")).json()
    tables = {one["name"]: one for one in shown["tables"]}
    assert tables["history"]["days"] >= 8
    assert tables["runs"]["days"] == 0
    assert sum(one["table_bytes"] + one["index_bytes"] for one in shown["tables"]) < shown["facts"]["bytes"]
    assert shown["facts"]["connections"] >= 1
    assert "autovacuum" not in {one["kind"] for one in shown["advice"]} or not shown["facts"]["has_autovacuum"]


async def test_settings_say_where_they_come_from_and_keep_secrets(store: Store) -> None:
    secret = "postgresql://foliot:hunter2@db/foliot"
    async with secured_app(store, is_open=True, database_url=secret) as app, client_at(app, "127.0.0.1") as client:
        answer = await client.get("/v1/settings")
    items = {one["name"]: one for one in answer.json()["items"]}
    assert set(items) == set(Config.__struct_fields__)
    assert items["database_url"]["value"] == "postgresql://foliot:***@db/foliot"
    assert "hunter2" not in answer.text
    assert (items["retries"]["value"], items["retries"]["source"]) == (3, "default")
    assert all(one["description"] for one in items.values())


def test_the_last_source_wins_and_a_supervisor_tells_its_own() -> None:
    environment = {"FOLIOT_PORT": "1", "FOLIOT_RETRIES": "2"}
    assert sources_of({"port": 3, "host": None}, environment) == {"port": "command line", "retries": "environment"}
    told = {**environment, "FOLIOT_SETTING_SOURCES": '{"port": "file"}'}
    assert sources_of({"port": 3}, told) == {"port": "file"}


@pytest.mark.parametrize(("path", "least"), PATHS.items())
async def test_they_need_a_role_and_a_token_for_all_namespaces(store: Store, path: str, least: Role) -> None:
    roles = [Role.VIEWER, Role.OPERATOR, Role.ADMIN]
    async with secured_app(store) as app, client_at(app, "10.0.0.1") as client:
        assert (await client.get(path)).status_code == 401
        for role in roles:
            everywhere, one = await make_token(store, role, "*"), await make_token(store, role, "team")
            allowed = roles.index(role) >= roles.index(least)
            assert (await client.get(path, headers=bearer(everywhere))).status_code == (200 if allowed else 403)
            assert (await client.get(path, headers=bearer(one))).status_code == 403
