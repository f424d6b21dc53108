"""`POST /v1/jobs/batch`: all jobs of a batch are stored, or none."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from foliot.store.store import Store
from tests.support.job_requests import ONCE, TASKS, WORKER, count_runs, post_job
from tests.support.runs import claim_runs


async def test_jobs_are_stored_and_answered_in_order(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    jobs = [{"task": "simulate", "payload": {"n": n}} for n in range(1, 10_001)]
    answer = await client.post("/v1/jobs/batch", json={"jobs": jobs}, timeout=30)
    assert (answer.status_code, answer.json()["created"], len(answer.json()["items"])) == (201, True, 10_000)
    assert await count_runs(sql) == 10_000
    claims = await claim_runs(store, WORKER, {"default": 3}, TASKS)
    assert {str(claim.run_id) for claim in claims} == {item["id"] for item in answer.json()["items"][:3]}
    assert {claim.payload for claim in claims} == {'{"n": 1}', '{"n": 2}', '{"n": 3}'}


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"task": "simulate", "priority": "high"}, "priority"),
        ({"task": "simulate", "delay_seconds": 1, "schedule_time": "2030-01-01T00:00:00Z"}, "schedule_time"),
        ({"task": "simulat"}, "task"),
        ({"task": "simulate", "every": "5m"}, "cron"),
        ({"task": "simulate", "idempotency_key": "k"}, "idempotency_key"),
        ({"task": "simulate", "oops": 1}, "oops"),
    ],
)
@pytest.mark.parametrize("is_bare", [True, False])
async def test_an_invalid_job_is_named_by_index_and_nothing_is_stored(
    client: httpx.AsyncClient, sql: Any, bad: dict[str, Any], field: str, is_bare: bool
) -> None:
    jobs = [ONCE, ONCE, bad, ONCE]
    answer = await client.post("/v1/jobs/batch", json=jobs if is_bare else {"jobs": jobs})
    place = "[2]" if is_bare else "jobs[2]"
    assert (answer.status_code, answer.json()["field"]) == (422, f"{place}.{field}"), answer.text
    assert answer.json()["detail"].startswith(f"{place}.{field}: ")
    assert await count_runs(sql) == 0


@pytest.mark.parametrize("number", [0, 10_001])
async def test_empty_and_too_large_batches_are_refused(client: httpx.AsyncClient, number: int) -> None:
    answer = await client.post("/v1/jobs/batch", json={"jobs": [{"task": "simulate"}] * number})
    assert (answer.status_code, answer.json()["field"]) == (422, "jobs")


async def test_unique_keys_hold_inside_and_outside_of_the_batch(client: httpx.AsyncClient, sql: Any) -> None:
    beside = (await post_job(client, **ONCE, unique={"key": "a"})).json()
    jobs = [ONCE | {"unique": {"key": key}} for key in ("a", "b", "b")]
    items = (await client.post("/v1/jobs/batch", json=jobs)).json()["items"]
    assert [item["created"] for item in items] == [False, True, False]
    assert items[0]["id"] == beside["id"]
    assert items[1]["id"] == items[2]["id"]
    refusing = [ONCE, ONCE | {"unique": {"key": "a", "on_conflict": "reject"}}]
    assert (await client.post("/v1/jobs/batch", json=refusing)).status_code == 409
    assert await count_runs(sql) == 2


async def test_a_repeated_batch_gets_the_same_answer(client: httpx.AsyncClient, sql: Any) -> None:
    first, again = [
        await client.post("/v1/jobs/batch", json=[ONCE, ONCE], headers={"Idempotency-Key": "k"}) for _ in range(2)
    ]
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json() | {"created": False}
    assert await count_runs(sql) == 2
