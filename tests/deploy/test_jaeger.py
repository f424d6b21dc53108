"""A real Jaeger shows the traces of a real Foliot."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.jaeger import Jaeger, jaeger_server
from tests.support.processes import FoliotProcess
from tests.support.waiting import until

TRACE, SUBMITTER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
WORKFLOW = {
    "name": "shop",
    "steps": [{"key": "take", "task": "simulate"}, {"key": "pack", "task": "simulate", "after": ["take"]}],
}


@pytest.mark.deploy
@pytest.mark.process
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("protocol", ["http", "grpc"])
async def test_a_real_jaeger_shows_runs_attempts_failures_and_workflows(protocol: str, database_url: str) -> None:
    async with jaeger_server() as jaeger:
        environment = {
            "FOLIOT_DATABASE_URL": database_url,
            "FOLIOT_OTEL_ENDPOINT": jaeger.http_url if protocol == "http" else jaeger.grpc_url,
            "FOLIOT_OTEL_PROTOCOL": protocol,
            "FOLIOT_TRACE_URL_TEMPLATE": "http://jaeger/trace/{trace_id}",
        }
        async with FoliotProcess("up", "--port", "0", "--workers", "1", environment=environment) as up:
            address = (await up.event("ProcessStarted", part="up"))["address"]
            async with httpx.AsyncClient(base_url=address, timeout=30, trust_env=False) as client:
                await a_submitted_run_is_part_of_the_trace(client, jaeger)
                await a_failed_run_shows_its_error(client, jaeger)
                await a_workflow_is_one_trace(client, jaeger)
        assert "foliot" in await jaeger.services()


async def a_submitted_run_is_part_of_the_trace(client: httpx.AsyncClient, jaeger: Jaeger) -> None:
    headers = {"traceparent": f"00-{TRACE}-{SUBMITTER}-01"}
    run = await create(client, "/v1/jobs", {"task": "simulate"}, headers)
    spans = await spans_of(jaeger, TRACE, 3)
    assert {span["operationName"] for span in spans} == {"simulate", "wait", "attempt 1"}
    (of_run,) = (span for span in spans if span["operationName"] == "simulate")
    # The submitter's own span has not been sent to this Jaeger.
    assert of_run["references"][0]["spanID"] == SUBMITTER
    for span in spans:
        if span is not of_run:
            assert span["references"][0]["spanID"] == of_run["spanID"]
    shown = (await client.get(f"/v1/runs/{run['id']}")).json()
    assert (shown["trace_id"], shown["trace_url"]) == (TRACE, f"http://jaeger/trace/{TRACE}")


async def a_failed_run_shows_its_error(client: httpx.AsyncClient, jaeger: Jaeger) -> None:
    job = {"task": "simulate", "payload": {"fail_rate": 1}, "retries": 0}
    run = await create(client, "/v1/jobs", job)
    spans = await spans_of(jaeger, run["id"].replace("-", ""), 3)
    failed = [span for span in spans if {"key": "error", "type": "bool", "value": True} in span["tags"]]
    assert {span["operationName"] for span in failed} == {"simulate", "attempt 1"}
    events = [str(field["value"]) for span in failed for log in span["logs"] for field in log["fields"]]
    assert "SimulatedFailure" in events


async def a_workflow_is_one_trace(client: httpx.AsyncClient, jaeger: Jaeger) -> None:
    workflow = await create(client, "/v1/workflows", WORKFLOW)
    run_id = workflow["run_id"] if "run_id" in workflow else workflow["id"]
    spans = await spans_of(jaeger, str(run_id).replace("-", ""), 7)
    assert sum(span["operationName"] == "simulate" for span in spans) == 2


async def create(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], headers: dict[str, str] | None = None
) -> dict[str, Any]:
    answer = await client.post(path, json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def spans_of(jaeger: Jaeger, trace_id: str, count: int) -> list[dict[str, Any]]:
    async def look() -> list[dict[str, Any]]:
        found = await jaeger.spans_of(trace_id)
        return found if len(found) >= count else []

    return await until(look)
