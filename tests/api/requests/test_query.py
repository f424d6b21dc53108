"""Query parameters that a route does not have are refused, on every route."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.problems import problem_of


@pytest.mark.parametrize(
    ("path", "field", "hint"),
    [
        ("/v1/runs?stat=failed", "stat", "did you mean 'state'?"),
        ("/v1/runs?state=failed&limt=3", "limt", "did you mean 'limit'?"),
        ("/v1/runs?State=failed", "State", "did you mean 'state'?"),
        ("/v1/runs?not-state=failed", "not-state", "did you mean 'not_state'?"),
        ("/v1/jobs?zzz", "zzz", "the parameters are "),
        ("/v1/jobs?=1", "", ""),
        ("/v1/stats?verbose=1", "verbose", "there are none"),
        ("/v1/events?followw=1", "followw", "did you mean 'follow'?"),
        ("/v1/jobs?%00=1", "\\0", ""),
        ("/v1/jobs?%ff%fe=1", "\ufffd\ufffd", ""),
        ("/v1/jobs?" + "n" * 5_000, "n" * 100, ""),
    ],
)
async def test_an_unknown_parameter_is_named(client: httpx.AsyncClient, path: str, field: str, hint: str) -> None:
    """Ignoring `stat=failed` would list all runs."""
    answer = await client.get(path)
    assert problem_of(answer) == (422, "invalid", field or None)
    assert hint in answer.json()["detail"]


async def test_a_request_with_an_unknown_parameter_creates_nothing(client: httpx.AsyncClient, sql: Any) -> None:
    """Ignoring the parameter would create the job."""
    answer = await client.post("/v1/jobs?dry_run=1", json={"task": "send_invoice"})
    assert problem_of(answer) == (422, "invalid", "dry_run")
    assert await sql.fetchval("select count(*) from foliot.runs") == 0


async def test_parameters_of_a_route_and_of_its_dependencies_are_known(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    for path, operations in document["paths"].items():
        if path.startswith("/v1/") and "get" in operations:
            names = [given["name"] for given in operations["get"].get("parameters", []) if given.get("in") == "query"]
            answer = await client.get(path.replace("{", "").replace("}", "") + "?unheard_of=1")
            assert problem_of(answer) == (422, "invalid", "unheard_of"), path
            for name in names:
                assert name in answer.json()["detail"], (path, name)


@pytest.mark.parametrize("path", ["/healthz?x=1", "/metrics?collect=all", "/stats?x=1"])
async def test_health_checks_metrics_and_the_lab_accept_other_parameters(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 200
