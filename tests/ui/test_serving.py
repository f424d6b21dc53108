from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from foliot.store.store import Store
from foliot.ui.files import Files
from tests.support.secured_app import client_at, secured_app
from tests.ui.conftest import INDEX, SCRIPT, client_of


@pytest.mark.parametrize("path", ["/ui/", "/ui/runs", "/ui/jobs/nightly/ticks", "/ui/no/such/page"])
async def test_every_page_is_the_same_document(browser: httpx.AsyncClient, path: str) -> None:
    answer = await browser.get(path)
    assert answer.status_code == 200
    assert answer.text == INDEX
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-cache"


async def test_the_policy_allows_nothing_from_elsewhere_and_no_inline_script(browser: httpx.AsyncClient) -> None:
    policy = dict(
        part.split(" ", 1) for part in (await browser.get("/ui/")).headers["content-security-policy"].split("; ")
    )
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "worker-src": "'self'",
        "manifest-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "foliot",
    }


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}'])
async def test_a_browser_that_has_the_page_gets_304(browser: httpx.AsyncClient, form: str) -> None:
    etag = (await browser.get("/ui/")).headers["etag"]
    again = await browser.get("/ui/runs", headers={"If-None-Match": form.format(etag)})
    assert again.status_code == 304
    assert again.content == b""
    assert again.headers["etag"] == etag
    assert (await browser.get("/ui/", headers={"If-None-Match": '"older"'})).status_code == 200


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate, br", "br"),
        ("gzip", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("gzip; q=0", None),
        ("identity", None),
        ("", None),
    ],
)
async def test_a_file_comes_as_the_browser_accepts_it_and_is_kept_forever(
    browser: httpx.AsyncClient, accepted: str, coding: str | None
) -> None:
    async with browser.stream("GET", "/ui/assets/main-1a2b.js", headers={"Accept-Encoding": accepted}) as answer:
        raw = b"".join([part async for part in answer.aiter_raw()])
    assert answer.status_code == 200
    assert answer.headers.get("content-encoding") == coding
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert (raw == SCRIPT) == (coding is None)


@pytest.mark.parametrize("name", ["gone-1a2b.js", "../secret.txt", "%2e%2e/secret.txt", "x" * 300])
async def test_a_missing_file_is_404_and_not_the_page(browser: httpx.AsyncClient, name: str) -> None:
    answer = await browser.get(f"/ui/assets/{name}")
    assert "not to be served" not in answer.text
    if answer.url.path.startswith("/ui/assets/"):
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_the_root_leads_people_to_the_ui_and_tells_programs_where_the_api_is(browser: httpx.AsyncClient) -> None:
    for path in ("/", "/ui"):
        answer = await browser.get(path, headers={"Accept": "text/html,*/*;q=0.8"})
        assert (answer.status_code, answer.headers["location"]) == (302, "/ui/")
    program = await browser.get("/", headers={"Accept": "*/*"})
    assert program.status_code == 404
    assert "/v1" in program.json()["detail"]


async def test_behind_a_proxy_the_root_leads_to_its_path(dist: Path) -> None:
    async with client_of(Files(dist, prefix="/foliot"), ui_path_prefix="/foliot") as client:
        answer = await client.get("/", headers={"Accept": "text/html"})
        assert answer.headers["location"] == "/foliot/ui/"


async def test_without_a_build_the_page_says_how_to_get_one(tmp_path: Path) -> None:
    async with client_of(Files(tmp_path)) as client:
        answer = await client.get("/ui/")
    assert answer.status_code == 503
    assert "make ui" in answer.text
    assert answer.headers["cache-control"] == "no-store"


async def test_switched_off_there_is_no_ui(dist: Path) -> None:
    async with client_of(Files(dist), ui="off") as client:
        for path in ("/", "/ui/", "/ui/runs", "/ui/assets/main-1a2b.js"):
            assert (await client.get(path, headers={"Accept": "text/html"})).status_code == 404


async def test_licences_of_others_are_there(browser: httpx.AsyncClient) -> None:
    assert (await browser.get("/ui/THIRD_PARTY.txt")).text == "licences"


async def test_the_page_needs_no_token_and_keeps_the_headers_of_every_answer(store: Store) -> None:
    async with secured_app(store) as app, client_at(app, "10.0.0.1") as client:
        answer = await client.get("/ui/runs")
        assert answer.status_code in (200, 503)
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert (await client.get("/v1/runs")).status_code == 401
