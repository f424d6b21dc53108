"""`/docs` shows every operation to people, and loads nothing from other servers."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import httpx
from fastapi import FastAPI


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: set[str] = set()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in ("meta",):
            self.open.append(tag)
        self.ids += [given["id"] or ""] if "id" in given else []
        if tag == "a":
            self.targets.add(given.get("href") or "")
        elif tag in ("script", "link", "img", "iframe") or any(
            name.startswith("on") or name in ("src", "style") for name in given
        ):
            self.loaded.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def test_the_page_shows_every_operation_and_loads_nothing(client: httpx.AsyncClient, app: FastAPI) -> None:
    answer = await client.get("/docs")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    seen = Seen()
    seen.feed(answer.text)
    assert (seen.open, seen.loaded) == ([], [])
    operations = [
        operation["operationId"] for methods in app.openapi()["paths"].values() for operation in methods.values()
    ]
    assert set(operations) <= set(seen.ids)
    assert len(seen.ids) == len(set(seen.ids))
    assert {target.removeprefix("#") for target in seen.targets} - {"/openapi.json"} <= set(seen.ids)


async def test_content_security_policy_allows_only_the_style_of_the_page(client: httpx.AsyncClient) -> None:
    answer = await client.get("/docs")
    (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = answer.headers["content-security-policy"]
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert "unsafe" not in policy


async def test_pages_of_the_framework_are_not_served(client: httpx.AsyncClient) -> None:
    for path in ("/redoc", "/docs/oauth2-redirect"):
        assert (await client.get(path)).status_code == 404
