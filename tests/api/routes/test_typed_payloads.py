"""A payload that no version of its task accepts is refused, however it is submitted, and nothing is stored."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

import httpx
import pytest

import foliot
from foliot.errors import Invalid
from foliot.model.namespace import Namespace
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.sdk.direct_submission import DirectSubmission, read_job
from foliot.sdk.jobs import Alike
from foliot.store.store import Store
from tests.support.announcing import announce
from tests.support.runs import finish
from tests.support.waiting import until


def first_version() -> foliot.App:
    app = foliot.App()

    @app.task
    async def charge(customer_id: int, at: dt.datetime | None = None, note: str = "") -> None:
        """Charges a customer."""

    @app.task
    async def anything(**_: Any) -> None: ...

    return app


def second_version() -> foliot.App:
    app = foliot.App()

    @app.task
    async def charge(customer_id: int, currency: str) -> None: ...

    return app


@pytest.fixture(autouse=True)
async def announced(client: httpx.AsyncClient, store: Store) -> None:
    await announce(store, first_version())


BAD = {"task": "charge", "payload": {"customer_id": "abc"}}
FINE = {"task": "charge", "payload": {"customer_id": 7}}
NO_ITEM = {"task": "charge", "payload": {"note": "x"}}


def over(items: Any, **fields: Any) -> dict[str, Any]:
    return {"map": {"items": items, "item_name": "customer_id", **fields}}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/jobs", BAD, "payload.customer_id"),
        ("/v1/jobs", {"task": "charge"}, "payload.customer_id"),
        ("/v1/jobs", {"job_type": "charge", "payload": {"custmer_id": 7}}, "payload.custmer_id"),
        ("/v1/jobs", BAD | {"idempotency_key": "once"}, "payload.customer_id"),
        ("/v1/jobs", BAD | {"unique": {"key": "one"}}, "payload.customer_id"),
        ("/v1/jobs", BAD | {"delay_seconds": 60}, "payload.customer_id"),
        ("/v1/jobs", BAD | {"cron": "0 3 * * *", "name": "nightly"}, "payload.customer_id"),
        ("/v1/jobs/check", BAD | {"cron": "0 3 * * *", "name": "nightly"}, "payload.customer_id"),
        ("/v1/jobs", {"task": "charge", "payload": {"customer_id": 7, "at": "soon"}}, "payload.at"),
        ("/v1/jobs/batch", [FINE, BAD], "[1].payload.customer_id"),
        ("/v1/jobs/batch", {"jobs": [FINE, BAD]}, "jobs[1].payload.customer_id"),
        ("/v1/jobs", {"task": "map", "payload": {**NO_ITEM, **over([7, "x"])}}, "payload.map.items[1]"),
        ("/v1/jobs", {"task": "map", "payload": {**NO_ITEM, **over([7, 8], chunk_size=2)}}, "payload.map.items[0]"),
        ("/v1/jobs", {"task": "map", "payload": {"task": "charge", "map": {"items": []}}}, "payload.payload.item"),
        ("/v1/workflows", {"steps": [{"key": "a", **FINE}, {"key": "b", **BAD}]}, "steps[1].payload.customer_id"),
        ("/v1/workflows", {"name": "w", "every": "1h", "steps": [{"key": "a", **BAD}]}, "steps[0].payload.customer_id"),
        ("/v1/workflows/check", {"steps": [{"key": "a", **BAD}]}, "steps[0].payload.customer_id"),
        ("/v1/workflows", {"steps": [{"key": "a", **NO_ITEM, **over([1, None])}]}, "steps[0].map.items[1]"),
        (
            "/v1/workflows",
            {"steps": [{"key": "a", "task": "charge", "map": {"range": {"stop": 5}, "item_name": "note"}}]},
            "steps[0].payload.customer_id",
        ),
        (
            "/v1/workflows",
            {"steps": [{"key": "in", "task": "workflow", "payload": {"steps": [{"key": "a", **BAD}]}}]},
            "steps[0].payload.steps[0].payload.customer_id",
        ),
    ],
)
async def test_a_payload_with_the_wrong_type_is_refused_with_its_field(
    client: httpx.AsyncClient, sql: Any, path: str, body: Any, field: str
) -> None:
    answer = await client.post(path, json=body)
    assert answer.status_code == 422, answer.text
    assert (answer.json()["field"], answer.json()["code"]) == (field, "invalid")
    assert answer.json()["detail"].startswith(f"{field}: ")
    assert await sql.fetchval("select (select count(*) from foliot.runs) + (select count(*) from foliot.jobs)") == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/jobs", FINE),
        ("/v1/jobs", {"task": "anything", "payload": {"x": [1]}}),
        ("/v1/jobs", {"task": "charge", "payload": {"customer_id": 7, "at": "2026-01-31T08:00:00Z", "note": "n"}}),
        ("/v1/jobs", {"task": "charge", "payload": {"customer_id": 7, "at": "{{ scheduled_for }}"}}),
        ("/v1/jobs", {"task": "map", "payload": {**NO_ITEM, **over([7, 8])}}),
        (
            "/v1/workflows",
            {
                "steps": [
                    {"key": "a", **FINE},
                    {"key": "b", "task": "charge", "payload": {"customer_id": {"$result": "a"}}, "after": ["a"]},
                    {"key": "c", **NO_ITEM, "after": ["a"], "map": {"result_of": "a", "item_name": "customer_id"}},
                    {"key": "d", **NO_ITEM, "map": {"range": {"stop": 3}, "item_name": "customer_id"}},
                    {"key": "e", **NO_ITEM, "after": ["a"], **over([1, {"$result": "a", "path": [0]}])},
                ]
            },
        ),
    ],
)
async def test_a_payload_with_the_right_type_is_accepted(client: httpx.AsyncClient, path: str, body: Any) -> None:
    answer = await client.post(path, json=body)
    assert answer.status_code == 201, answer.text


async def test_a_reference_to_a_result_is_refused_in_a_job_without_dependencies(client: httpx.AsyncClient) -> None:
    job = {"task": "charge", "payload": {"customer_id": {"$result": "a"}}}
    assert (await client.post("/v1/jobs", json=job)).status_code == 422


async def test_a_change_and_a_rerun_are_checked_too(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    job = (await client.post("/v1/jobs", json=FINE | {"every": "1h", "name": "hourly"})).json()
    for payload, field in (({"customer_id": None}, "payload.customer_id"), ({}, "payload.customer_id")):
        answer = await client.patch(f"/v1/jobs/{job['id']}", json={"payload": payload})
        assert (answer.status_code, answer.json().get("field")) == (422, field)
    assert (await client.patch(f"/v1/jobs/{job['id']}", json={"payload": {"customer_id": 8}})).status_code == 200
    run_id = str(await finish(store, RunState.FAILED, error="x", task="charge", queue="default"))
    for path, body in (
        (f"/v1/runs/{run_id}/rerun", {"payload": BAD["payload"]}),
        ("/v1/dead-letters/replay", {"ids": [run_id], "payload": BAD["payload"]}),
    ):
        answer = await client.post(path, json=body)
        assert (answer.status_code, answer.json().get("field")) == (422, "payload.customer_id"), path
    assert await sql.fetchval("select count(*) from foliot.runs") == 0


async def has_status(client: httpx.AsyncClient, body: Any, status: int) -> bool:
    return (await client.post("/v1/jobs", json=body)).status_code == status


async def test_a_payload_is_accepted_if_one_live_version_accepts_it(client: httpx.AsyncClient, store: Store) -> None:
    newer = {"task": "charge", "payload": {"customer_id": 7, "currency": "CHF"}}
    assert (await client.post("/v1/jobs", json=newer)).json()["field"] == "payload.currency"
    worker_id = await announce(store, second_version())
    for body in (newer, FINE):
        assert await until(partial(has_status, client, body, 201))
    answer = (await client.post("/v1/jobs", json=BAD)).json()
    assert answer["detail"] == (
        "payload.customer_id: must be an integer, not a string "
        "(by the latest of the 2 versions that run; the others refuse it, too)"
    )
    await store.workers.remove_worker(worker_id)
    assert await until(partial(has_status, client, newer, 422))


async def test_without_a_live_worker_the_latest_version_decides(client: httpx.AsyncClient, store: Store) -> None:
    for worker in await store.workers.list_workers(Namespace()):
        await store.workers.remove_worker(worker.id)
    await store.workers.remove_worker(await announce(store, second_version()))
    assert (await client.post("/v1/jobs", json=FINE)).json()["field"] == "payload.currency"


async def test_a_version_without_a_schema_accepts_everything(client: httpx.AsyncClient, store: Store) -> None:
    app = foliot.App()
    app.task(name="charge")(max)
    await announce(store, app)
    assert (await client.post("/v1/jobs", json=BAD)).status_code == 201


@pytest.mark.parametrize("schema", ['{"type": 7, "properties": []}', '{"allOf": "x"}', '{"$ref": "#"}'])
async def test_a_broken_schema_refuses_nothing(client: httpx.AsyncClient, store: Store, sql: Any, schema: str) -> None:
    await sql.execute(
        "update foliot.announcements set hash = 'broken', tasks = $1", f'{{"charge": {{"schema": {schema}}}}}'
    )
    await sql.execute("update foliot.tasks set announcement = 'broken'")
    await sql.execute("update foliot.workers set announcement = 'broken'")
    assert (await client.post("/v1/jobs", json=BAD)).status_code == 201


async def test_namespaces_have_versions_of_their_own(client: httpx.AsyncClient, store: Store) -> None:
    await announce(store, second_version(), namespace="team")
    headers = {"Foliot-Namespace": "team"}
    assert (await client.post("/v1/jobs", json=FINE, headers=headers)).json()["field"] == "payload.currency"
    assert (await client.post("/v1/jobs", json=FINE)).status_code == 201


async def test_payloads_straight_to_the_database_are_checked(store: Store, sql: Any) -> None:
    direct = DirectSubmission(store=store, namespace="default")
    with pytest.raises(Invalid, match=r"^payload\.customer_id: must be an integer"):
        await direct.accept(read_job(BAD))
    assert isinstance(await direct.accept(read_job(FINE)), NewRun)
    with pytest.raises(Invalid, match=r"^jobs\[1\]\.payload\.customer_id: must be an integer"):
        await direct.store_alike(Alike({"task": "charge"}, [{"customer_id": 1}, {"customer_id": "x"}]))
    assert await sql.fetchval("select count(*) from foliot.runs") == 0
    assert len(await direct.store_alike(Alike({"task": "charge"}, [{"customer_id": 1}] * 3))) == 3


async def test_old_announcements_are_pruned(store: Store, sql: Any) -> None:
    worker_id = await announce(store, second_version())
    await announce(store, first_version())
    await sql.execute("update foliot.announcements set announced_at = announced_at - interval '2 hours'")
    await announce(store, first_version())
    assert await sql.fetchval("select count(*) from foliot.announcements") == 2
    await store.workers.remove_worker(worker_id)
    await announce(store, first_version())
    assert await sql.fetchval("select count(*) from foliot.announcements") == 1
