"""The trace that a request belongs to, and links to it."""

from __future__ import annotations

from typing import Any

import asyncpg
import httpx
import pytest

from foliot.config import Config

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"
HEADERS = {"traceparent": TRACEPARENT}
OTHER = "00-11111111111111111111111111111111-2222222222222222-00"


@pytest.fixture
def config() -> Config:
    return Config(trace_url_template="http://jaeger/trace/{trace_id}?span={span_id}&run={run_id}")


async def create(client: httpx.AsyncClient, headers: dict[str, str] = HEADERS, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/jobs", json={"task": "send_invoice"} | fields, headers=headers)
    assert answer.status_code == 201, answer.text
    return await run_of(client, answer.json()["id"])


async def run_of(client: httpx.AsyncClient, run_id: str) -> dict[str, Any]:
    run: dict[str, Any] = (await client.get(f"/v1/runs/{run_id}")).json()
    return run


async def test_the_header_is_kept_and_leads_to_the_trace(client: httpx.AsyncClient) -> None:
    run = await create(client)
    span = run["id"].replace("-", "")[16:]
    assert run["trace_id"] == TRACE
    assert run["trace_url"] == f"http://jaeger/trace/{TRACE}?span={span}&run={run['id']}"
    assert run["options"] is None


async def test_a_run_without_a_submitting_span_has_a_trace_with_its_own_id(client: httpx.AsyncClient) -> None:
    run = await create(client, headers={})
    assert run["trace_id"] == run["id"].replace("-", "")


async def test_a_job_that_names_its_trace_keeps_it(client: httpx.AsyncClient) -> None:
    assert (await create(client, traceparent=OTHER))["trace_id"] == "1" * 32


@pytest.mark.parametrize(
    "header", ["", "00-abc", f"00-{'0' * 32}-b7ad6b7169203331-01", f"00-{TRACE}-{'0' * 16}-01", f"ff-{TRACEPARENT[3:]}"]
)
async def test_an_invalid_header_is_ignored(client: httpx.AsyncClient, header: str) -> None:
    run = await create(client, headers={"traceparent": header})
    assert run["trace_id"] == run["id"].replace("-", "")


async def test_a_header_of_a_later_version_is_read_as_far_as_it_is_known(client: httpx.AsyncClient) -> None:
    run = await create(client, headers={"traceparent": f"01-{TRACEPARENT[3:]}-more"})
    assert run["trace_id"] == TRACE


async def test_an_invalid_field_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/jobs", json={"task": "send_invoice", "traceparent": "mine"})
    assert (answer.status_code, answer.json()["field"]) == (422, "traceparent")


async def test_a_recurring_job_has_no_trace(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/jobs", json={"task": "send_invoice", "every": "1h"}, headers=HEADERS)
    assert answer.status_code == 201
    refused = await client.post("/v1/jobs", json={"task": "send_invoice", "every": "1h", "traceparent": OTHER})
    assert (refused.status_code, refused.json()["field"]) == (422, "traceparent")


async def test_each_job_of_a_batch_has_the_trace_of_the_request_or_its_own(client: httpx.AsyncClient) -> None:
    jobs = [{"task": "send_invoice"}, {"task": "send_invoice", "traceparent": OTHER}]
    answer = await client.post("/v1/jobs/batch", json=jobs, headers=HEADERS)
    runs = [await run_of(client, job["id"]) for job in answer.json()["items"]]
    assert [run["trace_id"] for run in runs] == [TRACE, "1" * 32]


async def test_the_steps_of_a_workflow_are_in_its_trace(client: httpx.AsyncClient, sql: asyncpg.Connection) -> None:
    steps = [{"key": "a", "task": "send_invoice"}, {"key": "b", "task": "send_invoice", "after": ["a"]}]
    made = (await client.post("/v1/workflows", json={"steps": steps}, headers=HEADERS)).json()
    span = made["id"].replace("-", "")[16:]
    for run_id in made["steps"].values():
        assert (await run_of(client, run_id))["trace_id"] == TRACE
    find = "select distinct options ->> 'traceparent' from foliot.runs where parent_id is not null"
    assert await sql.fetchval(find) == f"00-{TRACE}-{span}-01"


async def test_a_rerun_has_a_trace_of_its_own(client: httpx.AsyncClient) -> None:
    run = await create(client)
    await client.post(f"/v1/runs/{run['id']}/cancel")
    new = (await client.post(f"/v1/runs/{run['id']}/rerun")).json()
    assert new["trace_id"] == new["id"].replace("-", "")
