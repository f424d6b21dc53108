"""`GET /v1/tasks`: the tasks that jobs may name, their schemas, their workers, and versions that differ."""

from __future__ import annotations

import dataclasses
from typing import Any

import httpx
import pytest

import foliot
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.announcing import announce
from tests.support.runs import finish


@dataclasses.dataclass
class Line:
    sku: str
    count: int = 1


def first_version() -> foliot.App:
    app = foliot.App()

    @app.task(queue="mail", tags=["billing"])
    async def charge(customer_id: int, lines: list[Line] | None = None) -> None:
        """Charges a customer."""

    @app.task
    async def anything(**_: Any) -> None: ...

    return app


def second_version() -> foliot.App:
    app = foliot.App()

    @app.task(queue="mail")
    async def charge(customer_id: int, currency: str) -> None:
        """Charges a customer in a currency."""

    return app


async def listed(client: httpx.AsyncClient, **query: Any) -> dict[str, dict[str, Any]]:
    answer = await client.get("/v1/tasks", params=query)
    assert answer.status_code == 200, answer.text
    return {item["name"]: item for item in answer.json()["items"]}


async def test_tasks_are_listed_with_their_schema_and_their_workers(client: httpx.AsyncClient, store: Store) -> None:
    await announce(store, first_version())
    tasks = await listed(client)
    charge = tasks["charge"]
    assert (charge["description"], charge["queue"], charge["tags"]) == ("Charges a customer.", "mail", ["billing"])
    assert (charge["workers"], charge["versions"], charge["is_built_in"]) == (1, 1, False)
    assert charge["schema"]["properties"]["customer_id"]["type"] == "integer"
    assert charge["schema"]["required"] == ["customer_id"]
    assert tasks["anything"]["workers"] == 1
    shell = tasks["shell"]
    assert (shell["is_built_in"], shell["is_disabled"], shell["workers"]) == (True, False, 1)
    assert "command" in shell["schema"]["properties"]
    assert tasks["map"]["schema"] is None
    assert tasks["send_invoice"]["workers"] == 0, "announced, but no worker lives"


async def test_pages_follow_each_other_by_name(client: httpx.AsyncClient, store: Store) -> None:
    await announce(store, first_version())
    names: list[str] = []
    after = ""
    while True:
        page = (await client.get("/v1/tasks", params={"limit": 3, "after": after})).json()
        names += [item["name"] for item in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert names == sorted(names)
    assert {"anything", "charge", "http", "shell", "workflow"} <= set(names)


async def test_different_versions_are_listed_with_their_workers(client: httpx.AsyncClient, store: Store) -> None:
    old = await announce(store, first_version())
    same = await announce(store, first_version())
    new = await announce(store, second_version())
    shown = (await client.get("/v1/tasks/charge")).json()
    assert (shown["workers"], shown["versions"], shown["description"]) == (3, 2, "Charges a customer in a currency.")
    latest, older = shown["live_versions"]
    assert (latest["is_latest"], older["is_latest"]) == (True, False)
    assert latest["schema"]["required"] == ["customer_id", "currency"]
    assert [one["id"] for one in latest["workers"]] == [str(new)]
    assert {one["id"] for one in older["workers"]} == {str(old), str(same)}
    for worker in (old, same):
        await store.workers.remove_worker(worker)
    shown = (await client.get("/v1/tasks/charge")).json()
    assert (shown["workers"], [len(one["workers"]) for one in shown["live_versions"]]) == (1, [1])


async def test_a_task_without_a_live_worker_keeps_its_last_schema(client: httpx.AsyncClient, store: Store) -> None:
    await store.workers.remove_worker(await announce(store, first_version()))
    shown = (await client.get("/v1/tasks/charge")).json()
    assert (shown["workers"], shown["versions"], shown["live_versions"]) == (0, 0, [])
    assert shown["schema"]["required"] == ["customer_id"]


async def test_namespaces_see_their_own_tasks_only(client: httpx.AsyncClient, store: Store) -> None:
    await announce(store, second_version(), namespace="team-a")
    assert "charge" not in await listed(client)
    answer = await client.get("/v1/tasks", headers={"Foliot-Namespace": "team-a"})
    assert "charge" in [item["name"] for item in answer.json()["items"]]
    assert (await client.get("/v1/tasks/charge")).status_code == 404


async def test_a_disabled_task_is_marked(client: httpx.AsyncClient) -> None:
    await client.post("/v1/tasks/shell/disable", json={})
    assert (await client.get("/v1/tasks/shell")).json()["is_disabled"]


@pytest.mark.parametrize("name", ["nothing", "a%2Fb", "%00", "x" * 300])
async def test_an_unknown_task_is_not_found(client: httpx.AsyncClient, name: str) -> None:
    assert (await client.get(f"/v1/tasks/{name}")).status_code == 404


@pytest.mark.parametrize("query", [{"after": "a/b"}, {"after": "\0"}, {"limit": 0}, {"limit": 201}])
async def test_an_invalid_page_is_refused(client: httpx.AsyncClient, query: dict[str, Any]) -> None:
    answer = await client.get("/v1/tasks", params=query)
    assert (answer.status_code, answer.json()["field"]) == (422, next(iter(query)))


async def test_statistics_of_a_task_are_those_of_its_latest_runs(client: httpx.AsyncClient, store: Store) -> None:
    for state in (RunState.SUCCEEDED, RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED):
        await finish(store, state)
    shown = (await client.get("/v1/tasks/send_invoice")).json()["statistics"]
    assert (shown["ended"], shown["failed"]) == (3, 1)
    assert 0 <= shown["p50_seconds"] <= shown["p95_seconds"] < 60
    listed = (await client.get("/v1/tasks", params={"statistics": "1"})).json()["items"]
    assert [one["statistics"] for one in listed if one["name"] == "send_invoice"] == [shown]
    assert [one["statistics"] for one in listed if one["name"] == "shell"] == [None]
    assert not any(one["statistics"] for one in (await client.get("/v1/tasks")).json()["items"])
