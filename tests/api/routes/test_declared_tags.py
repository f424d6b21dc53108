"""Jobs get the tags that their task declares, however they are submitted, unless they have tags of their own."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from foliot.model.namespace import Namespace
from foliot.sdk.app import App
from foliot.sdk.direct_submission import DirectSubmission, read_job
from foliot.sdk.jobs import Alike
from foliot.store.store import Store
from tests.support.waiting import until
from tests.support.workers import worker_node

TAGS = ["billing", "nightly"]
OPTIONS = "select options -> 'tags' from foliot.runs where task = 'charge'"


@pytest.fixture(autouse=True)
async def announced(client: httpx.AsyncClient, store: Store) -> None:
    queues = dict.fromkeys(("charge", "plain", "map", "workflow"), "default")
    await store.workers.announce_tasks(queues, tags={"charge": TAGS})


async def created(client: httpx.AsyncClient, path: str, body: Any) -> Any:
    answer = await client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def tags_of(sql: Any) -> list[Any]:
    return [None if row[0] is None else msgspec.json.decode(row[0]) for row in await sql.fetch(OPTIONS)]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/jobs", {"task": "charge"}),
        ("/v1/jobs", {"job_type": "charge", "delay_seconds": 60}),
        ("/v1/jobs", {"task": "charge", "unique": {"key": "one"}}),
        ("/v1/jobs", {"task": "charge", "idempotency_key": "once"}),
        ("/v1/jobs", {"task": "charge", "retries": 1}),
        ("/v1/jobs/batch", [{"task": "charge"}, {"task": "charge"}]),
        ("/v1/workflows", {"steps": [{"key": "a", "task": "plain"}, {"key": "b", "task": "charge", "after": ["a"]}]}),
    ],
)
async def test_jobs_over_http_have_the_tags_of_their_task(
    client: httpx.AsyncClient, sql: Any, path: str, body: Any
) -> None:
    await created(client, path, body)
    found = await tags_of(sql)
    assert found
    assert all(tags == TAGS for tags in found)


async def test_a_job_with_tags_of_its_own_has_only_those(client: httpx.AsyncClient, sql: Any) -> None:
    for tags in (["mine"], []):
        await created(client, "/v1/jobs", {"task": "charge", "tags": tags})
    assert await tags_of(sql) == [["mine"], None]


async def test_recurring_jobs_fall_back_to_the_tags_of_their_task(client: httpx.AsyncClient, sql: Any) -> None:
    made = await created(client, "/v1/jobs", {"task": "charge", "name": "nightly", "every": "1h"})
    assert made["tags"] == TAGS
    for change, expected in (
        ({"tags": ["mine"]}, ["mine"]),
        ({"priority": 3}, ["mine"]),
        ({"tags": None}, TAGS),
        ({"tags": []}, []),
    ):
        answer = await client.patch("/v1/jobs/nightly", json=change)
        assert (answer.status_code, answer.json()["tags"]) == (200, expected)


async def test_jobs_straight_to_the_database_have_the_tags_of_their_task(store: Store, sql: Any) -> None:
    submission = DirectSubmission(store=store, namespace="default")
    await submission.store_all([await submission.accept(read_job({"task": "charge"}))])
    await submission.store_alike(Alike({"task": "charge"}, [{}, {}]))
    for job in ('{"task": "charge"}', '{"task": "charge", "tags": null, "retries": 2}'):
        await sql.fetchval("select foliot.submit($1::text::jsonb)", job)
    assert await tags_of(sql) == [TAGS] * 5
    for job in ('{"task": "charge", "tags": ["mine"]}', '{"task": "charge", "tags": []}'):
        run_id = await sql.fetchval("select foliot.submit($1::text::jsonb)", job)
        own = await sql.fetchval("select options -> 'tags' from foliot.runs where id = $1", run_id)
        assert own is None or msgspec.json.decode(own) == ["mine"]


async def test_items_and_steps_have_the_tags_that_the_worker_announced(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    app = App()

    @app.task(tags=["red"])
    async def paint(item: int = 0) -> None: ...

    async with worker_node(store, app):
        assert (await store.workers.list_tasks(Namespace()))["paint"].tags == ("red",)
        await created(client, "/v1/jobs", {"task": "map", "payload": {"task": "paint", "map": {"range": {"stop": 3}}}})
        flow = {"steps": [{"key": "a", "task": "paint", "map": {"items": [1]}}, {"key": "b", "task": "paint"}]}
        await created(client, "/v1/jobs", {"task": "workflow", "payload": flow})
        await until(lambda: sql.fetchval("select count(*) = 5 from foliot.history where task = 'paint'"))
    found = await sql.fetch("select options -> 'tags' from foliot.history where task = 'paint'")
    assert {row[0] for row in found} == {'["red"]'}
