"""Deleting recurring jobs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx

from foliot.model.ids import SHARDS
from foliot.store.store import Store
from tests.support.problems import problem_of
from tests.support.recurring import JOB_ROUTES, WORKER, call_job, create_job, end_runs, get_job, succeed, ticks_of


async def test_a_deleted_job_frees_its_name_and_its_runs_stay(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    job = await create_job(client, every="10m", name="report")
    ended = await succeed(client, "POST", "report", "/trigger")
    assert await end_runs(store) == 1
    waiting = await succeed(client, "POST", "report", "/trigger")
    await succeed(client, "PATCH", "report", priority=1)
    answer = await call_job(client, "DELETE", "report")
    assert (answer.status_code, answer.content) == (204, b"")
    for reference in ("report", job["id"]):
        for method, rest in [("GET", ""), *JOB_ROUTES]:
            assert problem_of(await call_job(client, method, reference, rest)) == (404, "not_found", None)
    assert (await client.get("/v1/jobs")).json()["items"] == []
    assert await sql.fetch("select id, job_id, state from foliot.history") == [
        (UUID(ended["id"]), UUID(job["id"]), "succeeded")
    ]
    assert (await get_job(client, waiting["id"]))["status"] == "pending"
    assert await sql.fetchval("select array_agg(version order by version) from foliot.job_versions") == [1, 2]
    again = await create_job(client, every="10m", name="report")
    assert again["id"] != job["id"]
    assert again["version"] == 1
    assert await ticks_of(client, "report") == []


async def test_held_runs_of_a_deleted_job_still_start(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    await create_job(client, every="10m", name="report", overlap="buffer_all")
    runs = [await succeed(client, "POST", "report", "/trigger") for _ in range(3)]
    await sql.execute("update foliot.runs set state = 'held', held_by = 'overlap' where id <> $1", UUID(runs[0]["id"]))
    await sql.execute("update foliot.shards set owner_id = $1, epoch = 1, expires_at = '2100-01-01'", WORKER)
    await call_job(client, "DELETE", "report")
    epochs = dict.fromkeys(range(SHARDS), 1)
    assert await store.overlap.release_held(WORKER, epochs) == []
    for _ in range(2):
        assert await end_runs(store) == 1
        assert await store.overlap.release_held(WORKER, epochs) == ["mail"]
    assert await end_runs(store) == 1
