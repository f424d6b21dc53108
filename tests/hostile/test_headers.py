"""Request heads that never end, are too large, or contain too much; and bodies that hide the same in their framing."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from foliot.api.security.connection_limits import HEADERS_MAX, PIPELINE_MAX, TARGET_MAX_BYTES
from tests.support.attacked import Attacked, answer_to, attacked, flood
from tests.support.processes import foliot_up

pytestmark = pytest.mark.process

HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = (
    b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)
ENDLESS = {
    "a header's value": (HEAD + b"X: ", b"x"),
    "a header's name": (HEAD, b"x"),
    "headers": (HEAD, b"x: y\r\n"),
    "empty headers": (HEAD, b"x:\r\n"),
    "a folded header": (HEAD + b"X: y\r\n", b" z\r\n"),
    "a target": (b"GET /", b"x"),
    "a query": (b"GET /?", b"x"),
    "a method": (b"", b"G"),
    "blanks after the method": (b"GET ", b" "),
    "empty lines before a request": (b"", b"\r\n"),
    "a chunk's extension": (CHUNKED + b"1;x=", b"x"),
    "a chunk's length": (CHUNKED, b"0"),
    "chunks of one byte": (CHUNKED, b"1\r\n \r\n"),
    "trailers": (CHUNKED + b"0\r\n", b"x: y\r\n"),
    "a trailer's value": (CHUNKED + b"0\r\nX: ", b"y"),
    "requests sent ahead": (b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "requests sent ahead, without a host": (b"", b"GET / HTTP/1.1\r\n\r\n"),
    "NUL": (b"", b"\0"),
    "TLS where there is none": (b"\x16\x03\x01\x02\x00\x01", b"\x00"),
}


@pytest.fixture
async def server(database_url: str) -> AsyncIterator[Attacked]:
    async with attacked(database_url) as server:
        yield server


async def test_a_request_that_never_ends_is_closed(server: Attacked) -> None:
    """Without the limit, a header value costs CPU time with the square of its length, and unlimited memory."""
    for name, (opening, unit) in ENDLESS.items():
        async with server.watched() as cost:
            flooded = await flood(server, opening, unit)
        assert flooded.is_ended, f"{name}: {flooded.sent} bytes were taken"
        # Most of it is in buffers of the operating system, on either side.
        assert flooded.sent < 20_000_000, name
        assert cost.cpu_seconds < 2.0, (name, cost.cpu_seconds)
        assert cost.memory_bytes < 60_000_000, (name, cost.memory_bytes)
        assert cost.slowest < 5.0, (name, cost.slowest)
        assert not cost.refusals, (name, cost.refusals)


def head(*headers: bytes, target: bytes = b"/healthz") -> bytes:
    return b"\r\n".join([b"GET " + target + b" HTTP/1.1", b"Host: localhost", b"Connection: close", *headers, b"", b""])


async def test_a_head_within_the_limits_is_accepted_and_a_larger_one_is_refused_with_the_reason(
    server: Attacked,
) -> None:
    many = [b"X-%d: y" % number for number in range(HEADERS_MAX)]
    cases = {
        head(): b"200",
        head(b"X: " + b"y" * 30_000): b"200",
        head(b"X: " + b"y" * 40_000): b"431",
        head(*many[2:]): b"200",
        head(*many): b"431",
        head(target=b"/healthz?" + b"x" * (TARGET_MAX_BYTES - 10)): b"200",
        head(target=b"/healthz?" + b"x" * TARGET_MAX_BYTES): b"414",
        b"nonsense\r\n\r\n": b"400",
    }
    for sent, status in cases.items():
        answer = await answer_to(server, sent)
        assert answer.split(b" ")[1] == status, (sent[:100], answer[:300])
        if status != b"200":
            assert b"application/problem+json" in answer
            assert b'"code":' in answer
    # A head of the same size in two pieces.
    assert b" 431 " in await answer_to(server, HEAD + b"X: " + b"y" * 20_000, b"y" * 20_000 + b"\r\n\r\n")


async def test_pipelined_requests_are_answered_in_order(server: Attacked) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = await answer_to(server, one * (PIPELINE_MAX // 2) + head())
    assert answer.count(b"HTTP/1.1 200") == PIPELINE_MAX // 2 + 1


async def test_an_upgrade_request_is_answered_without_upgrading(server: Attacked) -> None:
    assert b" 200 " in await answer_to(server, head(b"Upgrade: websocket").replace(b"close", b"Upgrade, close"))
    assert not [line for line in server.process.lines if "Traceback" in line or "nsupported" in line]


async def test_bad_requests_do_not_fill_the_log(server: Attacked) -> None:
    before = len(server.process.lines)
    for _ in range(50):
        await answer_to(server, b"nonsense\r\n\r\n")
    assert len(server.process.lines) - before < 10, server.process.lines[before:]


async def test_the_limit_is_a_setting(database_url: str) -> None:
    async with attacked(database_url, request_head_max_bytes=2_000) as server:
        assert b" 200 " in await answer_to(server, head(b"X: " + b"y" * 1_500))
        assert b" 431 " in await answer_to(server, head(b"X: " + b"y" * 3_000))


async def test_foliot_up_has_the_same_limits(tmp_path: Path) -> None:
    async with foliot_up(tmp_path, "--workers", "0") as up:
        address = (await up.event("ProcessStarted", part="up"))["address"]
        pid = (await up.event("ChildStarted", name="server"))["pid"]
        flooded = await flood(Attacked(address, pid, up), HEAD + b"X: ", b"x")
        assert flooded.is_ended
        async with httpx.AsyncClient(base_url=address) as client:
            assert (await client.get("/healthz")).status_code == 200


# No worker knows the task, so the error shows how the body was read.
JOB = b'{"task": "unheard_of"}'
READ = b'"code":"unknown_task"'
CREATE = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
ENCODINGS = [
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: gzip,chunked\r\n",
    b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: identity, chunked\r\n",
    b"Transfer-Encoding: x, deflate, chunked\r\n",
    b"Transfer-Encoding: chunked, chunked\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
]
TRAILERS = [[b"Host: example.com"], [b"Idempotency-Key: a"], [b"Content-Type: text/plain"], [b"X: y"] * 200]


def chunked(body: bytes, *trailers: bytes) -> bytes:
    return b"\r\n".join([b"%x" % len(body), body, b"0", *trailers, b"", b""])


async def test_an_unsupported_transfer_encoding_is_refused(server: Attacked) -> None:
    """Otherwise the chunks of `gzip, chunked` would be decoded, and the rest read as the job."""
    for headers in ENCODINGS:
        for body in (JOB, gzip.compress(JOB)):
            answer = await answer_to(server, CREATE + headers + b"\r\n" + chunked(body))
            assert b" 400 " in answer.split(b"\r\n")[0], (headers, answer[:300])
            assert b'"code":"malformed"' in answer
    # Only HTTP/1.1 has chunks.
    opening = CREATE + b"Transfer-Encoding: Chunked\r\n\r\n"
    answer = await answer_to(server, opening.replace(b"1.1", b"1.0", 1) + chunked(JOB))
    assert b" 400 " in answer.split(b"\r\n")[0]
    assert READ in await answer_to(server, opening + chunked(JOB))


async def test_trailers_are_not_headers(server: Attacked) -> None:
    """Otherwise trailers would bypass the checks of headers: host, idempotency key, and identity of the client."""
    opening = CREATE + b"Transfer-Encoding: chunked\r\n\r\n"
    for trailers in TRAILERS:
        for sent in ([opening + chunked(JOB, *trailers)], [opening, chunked(JOB, *trailers)]):
            answer = await answer_to(server, *sent)
            assert READ in answer, (trailers, answer[:300])


async def test_a_request_that_offers_another_protocol_keeps_its_body(server: Attacked) -> None:
    """Java's client offers HTTP/2 with its first request of any kind, and its body must not get lost."""
    offer = CREATE.replace(b"close", b"Upgrade, HTTP2-Settings, close") + b"Upgrade: h2c\r\nHTTP2-Settings: AAM\r\n"
    for framing, body in (
        (b"Content-Length: %d\r\n\r\n" % len(JOB), JOB),
        (b"Transfer-Encoding: chunked\r\n\r\n", chunked(JOB)),
    ):
        head = offer + framing
        for sent in ([head + body], [head, body], [head[:50], head[50:], body[:9], body[9:]]):
            answer = await answer_to(server, *sent)
            assert READ in answer, (framing, len(sent), answer[:300])
            assert answer.count(b"HTTP/1.1 ") == 1
    answer = await answer_to(server, b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\nUpgrade: x\r\n\r\nmore")
    assert answer.split(b" ")[1][:1] == b"4", answer[:300]
