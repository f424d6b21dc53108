"""Hosts and origins that only look like this machine are refused in local open mode."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from foliot.store.store import Store
from tests.support.processes import foliot_up
from tests.support.secured_app import client_at, secured_app, send_raw
from tests.support.tokens import bearer, make_token

OURS = [
    "127.0.0.1",
    "127.0.0.1:8000",
    "localhost",
    "LocalHost:8000",
    "[::1]",
    "[::1]:8000",
    "localhost:1",
    "localhost:65535",
]
FOREIGN: list[str | bytes] = [
    # User names, which a careless parser cuts off.
    "evil.com@127.0.0.1", "evil.com@127.0.0.1:8000", "evil.com:80@localhost", "@127.0.0.1", "user:@localhost",
    "localhost@evil.com",
    "evil.com%40127.0.0.1",
    # Paths, queries and fragments, likewise.
    "127.0.0.1/evil.com", "evil.com/127.0.0.1", "127.0.0.1?evil.com", "127.0.0.1#evil.com", "evil.com#127.0.0.1",
    "evil.com\\127.0.0.1",
    "http://127.0.0.1", "//127.0.0.1",
    # Invalid ports.
    "localhost:", "localhost:x", "localhost:-1", "localhost:0", "localhost:65536", "localhost:99999", "localhost:080",
    "localhost:80:80",
    "localhost:8000@evil.com", "localhost:+80", "localhost:8 0", "localhost:\u0668".encode(),
    # Brackets.
    "[127.0.0.1]", "[localhost]", "::1", "::1:8000", "[::1", "::1]", "[::1]evil.com", "evil.com[::1]", "[::1]:",
    "[[::1]]", "[::1%25lo]",
    "[::1.evil.com]", "[v1.::1]", "[]",
    # Other spellings of the same address, or of a part of it.
    "127.0.0.1.", "localhost.", "localhost..", ".localhost", "127.1", "127.0.1", "0x7f.0.0.1", "0177.0.0.1",
    "2130706433", "0.0.0.0", "0",
    "127.000.000.001", "[::ffff:127.0.0.1]", "127.0.0.1.evil.com", "localhost.evil.com",
    "evil-localhost", "localhost-evil.com", "xlocalhost",
    # Spaces, lists and control characters.
    "127.0.0.1 evil.com", "evil.com 127.0.0.1", "127.0.0.1, evil.com", "127.0.0.1,evil.com", "local host",
    "127.0.0.1\t.evil.com",
    "\x7f127.0.0.1",
    # Letters that change by case folding.
    "\u24db\u24de\u24d2\u24d0lhost".encode(), "localho\u017ft".encode(), "\uff11\uff12\uff17.0.0.1".encode(),
    "127\u30020.0.1".encode(),
    "\xb9\xb27.0.0.1".encode("latin-1"), "lo\u0441alhost".encode(),
    # Empty, and too long.
    "", "evil.com", "10.0.0.1", "a" * 60_000,
]  # fmt: skip


def as_bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


@pytest.fixture
async def client(store: Store) -> AsyncIterator[httpx.AsyncClient]:
    async with secured_app(store, is_open=True) as app, client_at(app, "127.0.0.1") as client:
        yield client


@pytest.mark.parametrize("host", OURS)
async def test_names_of_this_machine_are_accepted(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/v1/pauses", headers={"Host": host})).status_code == 200
    assert (await client.get("/v1/pauses", headers={"Host": host, "Origin": f"http://{host}"})).status_code == 200


async def test_other_hosts_are_refused(client: httpx.AsyncClient) -> None:
    let_in = []
    for host in FOREIGN:
        answer = await client.get("/v1/pauses", headers=[(b"host", as_bytes(host))])
        if (answer.status_code, answer.json()["code"]) != (403, "foreign_host"):
            let_in.append(host)
        assert len(answer.content) < 2000
    assert let_in == []


async def test_other_origins_are_refused(client: httpx.AsyncClient) -> None:
    """This holds for every method: a request has an effect even if the page can't read its answer."""
    ours = "localhost:8000"
    origins: list[str | bytes] = [
        "null", "", "*", " ", "localhost:8000", "//localhost:8000", "http://localhost:8000/",
        "http://localhost:8000@evil.com",
        "http://evil.com@localhost:8000", "http://localhost:8000.evil.com", "http://localhost", "http://localhost:80",
        "http://127.0.0.1:8000",
        "ftp://localhost:8000", "file://", "http://localhost:8000,http://evil.com", "http://localhost:8000 "
        "http://evil.com", "http://[::1]:8000",
        "http://localhost.:8000", "http:/localhost:8000", "javascript:localhost:8000", "http://localhost:08000",
        "http://evil.com",
        "http://localho\u017ft:8000".encode(),
    ]  # fmt: skip
    let_in = []
    for method in ("GET", "POST", "DELETE", "OPTIONS"):
        for origin in origins:
            answer = await client.request(
                method, "/v1/pauses", headers=[(b"host", ours.encode()), (b"origin", as_bytes(origin))]
            )
            if (answer.status_code, answer.json()["code"]) != (403, "foreign_origin"):
                let_in.append((method, origin))
    assert let_in == []


@pytest.mark.parametrize(
    "name", ["Host", "Origin", "Sec-Fetch-Site", "Authorization", "Content-Type", "Foliot-Namespace"]
)
@pytest.mark.parametrize("is_open", [True, False])
async def test_repeated_headers_that_decide_about_access_are_refused(store: Store, name: str, is_open: bool) -> None:
    good = {
        "Host": "localhost:8000", "Origin": "http://localhost:8000", "Sec-Fetch-Site": "same-origin",
        "Content-Type": "application/json",
        "Foliot-Namespace": "default", "Authorization": bearer(await make_token(store))["Authorization"],
    }  # fmt: skip
    headers = [(key.encode(), value.encode()) for key, value in good.items()]
    async with secured_app(store, is_open=is_open) as app, client_at(app, "127.0.0.1") as client:
        assert (await client.get("/v1/pauses", headers=headers)).status_code == 200
        for other in (b"evil.com", good[name].encode()):
            for repeated in ([*headers, (name.encode(), other)], [(name.lower().encode(), other), *headers]):
                answer = await client.get("/v1/pauses", headers=repeated)
                assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (
                    400,
                    "malformed",
                    name.lower(),
                )


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything", ""])
async def test_foreign_pages_can_only_link_here(client: httpx.AsyncClient, site: str) -> None:
    visit = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert (await client.get("/docs", headers=visit)).status_code == 200
    for kind in (
        {"Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Mode": "websocket"},
    ):
        assert (await client.get("/v1/events", headers=visit | kind)).json()["code"] == "foreign_origin"
    assert (await client.post("/v1/pause", headers=visit)).json()["code"] == "foreign_origin"
    assert (await client.get("/v1/pauses", headers={"Sec-Fetch-Site": site})).json()["code"] == "foreign_origin"


async def test_other_protocols_are_refused(store: Store) -> None:
    sent = []

    async def send(message: object) -> None:
        sent.append(message)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async with secured_app(store, is_open=True) as app:
        await app({"type": "websocket", "path": "/v1/events", "headers": [(b"host", b"localhost")]}, receive, send)
    assert sent == []


def request(target: str, *headers: str, method: str = "GET", version: str = "HTTP/1.1") -> bytes:
    return "\r\n".join([f"{method} {target} {version}", *headers, "Connection: close", "", ""]).encode("latin-1")


@pytest.mark.process
@pytest.mark.timeout(120)
async def test_a_real_server_in_local_mode_refuses_them(tmp_path: Path, database_url: str) -> None:
    around = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_WORKERS": "0"}
    async with foliot_up(tmp_path, environment=around) as up:
        url = (await up.event("ProcessStarted", part="up"))["address"]
        ours = url.removeprefix("http://")
        upgrade = (
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            "Sec-WebSocket-Version: 13",
        )
        for expected, sent in {
            (200,): [
                request("/v1/pauses", f"Host: {ours}"),
                # If the request target is a whole URL, it names the host, and the header is ignored.
                request(f"http://{ours}/v1/pauses", f"Host: {ours}"),
                request(f"http://{ours}/v1/jobs?tag=http://evil.com", "Host: evil.com"),
            ],
            (400, 403): [
                request("/v1/pauses"),
                request("/v1/pauses", version="HTTP/1.0"),
                request("/v1/pauses", "Host:"),
                request("/v1/pauses", f"Host: {ours}", "Host: evil.com"),
                request("/v1/pauses", "Host: evil.com", f"Host: {ours}"),
                request("/v1/pauses", f"Host: {ours}", f"Host: {ours}"),
                request("/v1/pauses", f"Host: evil.com@{ours}"),
                request("/v1/pauses", f"Host: {ours}", " evil.com"),
                request("http://evil.com/v1/pauses", f"Host: {ours}"),
                request(f"http://evil.com@{ours}/v1/pauses", f"Host: {ours}"),
                request("https://evil.com/v1/pauses", f"Host: {ours}"),
                request("http:///v1/pauses", f"Host: {ours}"),
                request("http://evil.com", f"Host: {ours}"),
                request("//evil.com/v1/pauses", "Host: evil.com"),
                request("evil.com:80", f"Host: {ours}", method="CONNECT"),
                request("*", "Host: evil.com", method="OPTIONS"),
                request("/v1/events", f"Host: {ours}", "Origin: http://evil.com", *upgrade),
                request("/v1/events", f"Host: evil.com@{ours}", *upgrade),
            ],
        }.items():
            for bytes_sent in sent:
                answer = await send_raw(url, bytes_sent)
                assert answer.status in expected, (bytes_sent, answer.text)
