"""Local open mode accepts requests from this machine, and none from foreign web pages."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from starlette.datastructures import Headers

from foliot.api.security.local_mode import refuse_foreign_request, refuse_unsupported_body
from foliot.errors import ForeignOrigin

JOB = {"task": "send_invoice"}
OURS = ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST:8000"]
FOREIGN = [
    "evil.example",
    "localhost.evil.example:8000",
    "127.0.0.1.evil.example",
    "10.0.0.1:8000",
    "localhost@evil.example",
    "",
    "[",
    "[::1",
]


def refusal(method: str = "GET", **headers: str) -> str | None:
    given = Headers({name.replace("_", "-"): value for name, value in headers.items()})
    found = refuse_foreign_request(method, given) or refuse_unsupported_body(method, given)
    return None if found is None else found.code


@pytest.mark.parametrize("host", OURS)
def test_requests_that_name_this_machine_are_accepted(host: str) -> None:
    assert refusal(host=host) is None


@pytest.mark.parametrize("host", FOREIGN)
def test_requests_that_name_a_foreign_host_are_refused(host: str) -> None:
    assert refusal(host=host) == "foreign_host"


def test_a_request_without_a_host_is_refused() -> None:
    assert refusal() == "foreign_host"


@pytest.mark.parametrize("host", OURS[1:3])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_our_own_pages_are_accepted(method: str, host: str) -> None:
    assert refusal(method, host=host, origin=f"http://{host}", content_type="application/json") is None


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://localhost:9000",
        "http://127.0.0.1:8000",
        "null",
        "",
        "http://[",
        "http://\u2100.example",
        "localhost:8000",
    ],
)
def test_pages_of_other_origins_are_refused(method: str, origin: str) -> None:
    headers = {"host": "localhost:8000", "origin": origin, "content-type": "application/json"}
    found = refuse_foreign_request(
        method, Headers(raw=[(name.encode(), value.encode()) for name, value in headers.items()])
    )
    assert isinstance(found, ForeignOrigin)


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_json_bodies_are_accepted(kind: str) -> None:
    assert refusal("POST", host="localhost", content_type=kind) is None


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""])
def test_bodies_of_types_that_any_page_may_send_are_refused(method: str, kind: str) -> None:
    assert refusal(method, host="localhost", content_type=kind, content_length="2") == "not_json"
    assert refusal(method, host="localhost", content_type=kind, transfer_encoding="chunked") == "not_json"


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_a_change_without_a_body_needs_no_content_type_but_must_not_be_cross_site(method: str) -> None:
    assert refusal(method, host="localhost") is None
    assert refusal(method, host="localhost", content_length="0") is None
    for site in ("same-origin", "none"):
        assert refusal(method, host="localhost", sec_fetch_site=site) is None
    for site in ("cross-site", "same-site", "else"):
        assert refusal(method, host="localhost", sec_fetch_site=site) == "foreign_origin"
    assert refusal("GET", host="localhost", sec_fetch_site="cross-site") == "foreign_origin"
    visit = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    assert refusal("GET", host="localhost", sec_fetch_site="cross-site", **visit) is None
    assert refusal("POST", host="localhost", sec_fetch_site="cross-site", **visit) == "foreign_origin"


async def test_every_route_is_guarded(client: httpx.AsyncClient, sql: Any) -> None:
    for path in ("/v1/jobs/1", "/healthz", "/openapi.json", "/nothing"):
        answer = await client.get(path, headers={"host": "evil.example"})
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign_host")
        assert answer.headers["content-type"] == "application/problem+json"
    for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}, {"origin": "http://["}):
        answer = await client.post("/v1/jobs", json=JOB, headers=headers)
        assert answer.status_code == 403
    assert await sql.fetchval("select count(*) from foliot.runs") == 0
    assert (await client.post("/v1/jobs", json=JOB, headers={"origin": "http://localhost:8000"})).status_code == 201
