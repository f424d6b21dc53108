"""Limits of queues and of single jobs over HTTP."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import httpx
import pytest

from foliot.clock import Clock
from foliot.model.fairness import FAIR_STEP
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.invoices import claimed, submit


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    """It is 2026-03-01, 12:00 UTC."""
    return fake_clock


async def test_a_full_queue_refuses_jobs(client: httpx.AsyncClient, store: Store, fake_clock: FakeClock) -> None:
    answer = await client.patch("/v1/queues/mail", json={"max_depth": 2})
    assert answer.json() | {"updated_at": None} == {
        "name": "mail",
        "max_running": None,
        "max_depth": 2,
        "updated_at": None,
    }
    for _ in range(2):
        assert (await submit(client)).status_code == 201
    await fake_clock.advance(1.1)
    refused = await submit(client)
    assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (429, "queue_full", "1")
    assert (await submit(client, queue="other")).status_code == 201
    assert await claimed(store) == 2
    await fake_clock.advance(1.1)
    assert (await submit(client)).status_code == 201


async def test_limits_of_a_queue_are_changed_one_by_one_and_removed(client: httpx.AsyncClient, store: Store) -> None:
    await client.patch("/v1/queues/mail", json={"max_running": 1})
    await client.patch("/v1/queues/mail", json={"max_depth": 100})
    await submit(client)
    assert await claimed(store) == 0
    answer = await client.patch("/v1/queues/mail", json={"max_running": None})
    assert answer.json().items() >= {"name": "mail", "max_running": None, "max_depth": 100}.items()
    assert await claimed(store) == 1
    for body, field in [
        ({"max_running": 0}, "max_running"),
        ({"max_depth": "x"}, "max_depth"),
        ({"slots": 1}, "slots"),
    ]:
        refused = await client.patch("/v1/queues/mail", json=body)
        assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert (await client.patch("/v1/queues/a b", json={})).json()["field"] == "name"


async def test_fairness_holds_for_every_way_to_submit_over_http(client: httpx.AsyncClient, sql: Any) -> None:
    job: dict[str, Any] = {"task": "send_invoice", "fairness_key": "tenant"}
    for body in (job, job | {"unique": {"key": "u"}}, job | {"idempotency_key": "i"}):
        assert (await client.post("/v1/jobs", json=body)).status_code == 201
    for batch in ({"jobs": [job, job]}, {"jobs": [job], "idempotency_key": "b"}):
        assert (await client.post("/v1/jobs/batch", json=batch)).status_code == 201
    ranks = [row[0] for row in await sql.fetch("select rank from foliot.runs order by rank")]
    assert [after - before for before, after in pairwise(ranks)] == [FAIR_STEP] * 5


async def test_a_run_shows_the_gate_that_holds_it(client: httpx.AsyncClient) -> None:
    made = (await submit(client, concurrency={"key": "k", "limit": 1})).json()
    assert (await client.get(f"/v1/runs/{made['id']}")).json()["held_by"] == "limit"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"concurrency": {"limit": 1}}, "concurrency"),
        ({"concurrency": {"key": "", "limit": 1}}, "concurrency.key"),
        ({"concurrency": {"key": "a", "limit": 0}}, "concurrency.limit"),
        ({"concurrency": {"key": "a", "at_limit": "explode"}}, "concurrency.at_limit"),
        ({"rate": {"key": "a", "limit": 1}}, "rate"),
        ({"rate": {"key": "a", "limit": 1, "period_seconds": 0}}, "rate.period_seconds"),
        ({"fairness_key": ""}, "fairness_key"),
        ({"guarantee": "exactly_once"}, "guarantee"),
    ],
)
async def test_invalid_limits_are_refused_with_their_field(
    client: httpx.AsyncClient, fields: dict[str, Any], field: str
) -> None:
    answer = await submit(client, **fields)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_a_job_with_a_limit_waits_for_its_turn_and_says_so(client: httpx.AsyncClient, store: Store) -> None:
    job = (await submit(client, concurrency={"key": "tenant", "limit": 1})).json()
    assert (job["status"], job["state"]) == ("pending", "held")
    assert (await store.limits.admit_runs()).queues == ["mail"]
    assert (await client.get(f"/v1/jobs/{job['id']}")).json()["state"] == "ready"
