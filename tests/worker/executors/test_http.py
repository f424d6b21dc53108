"""The task `http` against a real server: the request, the use of the response, and refused addresses."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from foliot.config import Config
from foliot.errors import ConfigurationError
from foliot.model.outcome import Attempted, Ending, decide
from foliot.model.run import RunOptions
from foliot.model.states import RunState
from foliot.outbound.addresses import AddressPolicy, is_public
from foliot.worker.executors.http import http
from tests.support.certificates import Authority
from tests.support.contexts import KeptContext
from tests.support.fake_clock import FakeClock
from tests.support.http import Answering, answer, answering

PRIVATE = Config(http_allow_private=True, http_body_max_bytes=1000)


@pytest.fixture
async def server() -> AsyncIterator[Answering]:
    async with answering() as found:
        yield found


async def request(
    payload: dict[str, Any], *, config: Config = PRIVATE, guard: AddressPolicy | None = None
) -> Attempted:
    return await http(config, FakeClock(), guard)(payload, KeptContext())


def kind(attempted: Attempted) -> str:
    assert attempted.ending is Ending.FAILED
    assert attempted.error is not None
    return attempted.error.kind


async def test_a_request_is_sent_as_specified_and_its_response_is_the_result(server: Answering) -> None:
    server.answers["/hook?a=1"] = answer("201 Created", b'{"id": 7}', Content_Type="application/json", X_Other="no")
    payload = {
        "url": f"{server.url}/hook?a=1",
        "method": "POST",
        "headers": {"X-Key": "k"},
        "body": {"order": [1, None]},
    }
    attempted = await request(payload)
    assert attempted.ending is Ending.SUCCEEDED
    assert json.loads(attempted.result or "") == {
        "status": 201,
        "headers": {"content-type": "application/json", "content-length": "9"},
        "body": {"id": 7},
    }
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/hook?a=1", b'{"order":[1,null]}')
    assert (asked.headers["x-key"], asked.headers["content-type"]) == ("k", "application/json")
    assert asked.headers["host"] == f"127.0.0.1:{server.port}"


async def test_a_text_body_is_sent_unchanged_and_a_missing_one_is_not_sent(server: Answering) -> None:
    server.answers["/"] = answer(body="grüß".encode())
    attempted = await request(
        {"url": server.url, "method": "PUT", "body": "plain ü", "headers": {"Content-Type": "text/csv"}}
    )
    assert json.loads(attempted.result or "")["body"] == "grüß"
    await request({"url": server.url, "method": "DELETE"})
    assert [(asked.body, asked.headers.get("content-type")) for asked in server.asked] == [
        ("plain ü".encode(), "text/csv"),
        (b"", None),
    ]


@pytest.mark.parametrize(
    ("expected", "status", "is_fine"),
    [
        ("2xx", 204, True),
        ("2xx", 302, False),
        ("4xx", 404, True),
        (404, 404, True),
        (404, 200, False),
        ([200, 409], 409, True),
        ([200, 409], 201, False),
    ],
)
async def test_the_status_decides_about_success(
    server: Answering, expected: object, status: int, is_fine: bool
) -> None:
    server.answers["/"] = answer(f"{status} Whatever")
    attempted = await request({"url": server.url, "expected_status": expected})
    assert (attempted.ending is Ending.SUCCEEDED) is is_fine
    if not is_fine:
        assert kind(attempted) == "UnexpectedStatus"


async def test_an_unexpected_response_is_in_the_output(server: Answering) -> None:
    server.answers["/"] = answer("500 Internal Server Error", b"it broke")
    context = KeptContext()
    attempted = await http(PRIVATE, FakeClock())({"url": server.url}, context)
    assert attempted.error is not None
    assert attempted.error.message == "500 Internal Server Error, expected 2xx"
    assert context.output.endswith(b": 500 Internal Server Error\nit broke")


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("999999999", 86_400.0),
        ("soon", None),
        ("-1", None),
        ("", None),
    ],
)
async def test_retry_after_sets_the_time_of_the_retry(server: Answering, said: str, seconds: float | None) -> None:
    server.answers["/"] = answer("503 Busy", Retry_After=said)
    attempted = await request({"url": server.url})
    assert attempted.delay_seconds == seconds
    options = RunOptions(retries=1, timeout_seconds=1)
    outcome = decide(KeptContext().run_id, 1, attempted, attempt=1, lost=0, options=options, chance=0.5)
    assert outcome.state is RunState.SCHEDULED
    assert outcome.delay_seconds == (2.1 if seconds is None else seconds)


async def test_connection_errors_and_timeouts_are_failures(server: Answering) -> None:
    with socket.socket() as closed:
        # Bound, so that nobody else gets the port, but not listening.
        closed.bind(("127.0.0.1", 0))
        assert kind(await request({"url": f"http://127.0.0.1:{closed.getsockname()[1]}"})) == "ConnectError"
    server.answers["/garbage"] = b"SSH-2.0-OpenSSH\r\n\r\n"
    assert kind(await request({"url": f"{server.url}/garbage"})) == "RemoteProtocolError"
    server.answers["/hang"] = b""
    assert kind(await request({"url": f"{server.url}/hang", "timeout_seconds": 0.2})) == "HttpTimeout"


async def test_an_endless_body_is_cut_while_it_is_read(server: Answering) -> None:
    server.answers["/"] = b"HTTP/1.1 200 OK\r\n\r\n"
    server.endless.add("/")
    attempted = await request({"url": server.url})
    result = json.loads(attempted.result or "")
    assert (len(result["body"]), result["truncated"]) == (1000, True)
    assert server.sent < 50_000_000
    # The event loop closes unfinished generators in tasks of its own.
    gc.collect()
    await asyncio.sleep(0.01)


async def test_a_compressed_body_is_not_decompressed(server: Answering) -> None:
    server.answers["/"] = answer(body=b"\x1f\x8b rest", Content_Encoding="gzip")
    attempted = await request({"url": server.url})
    assert attempted.ending is Ending.SUCCEEDED
    assert server.asked[0].headers["accept-encoding"] == "identity"


async def test_redirects_are_followed_on_request_up_to_a_limit(server: Answering) -> None:
    server.answers["/a"] = answer("302 Found", Location="/b")
    server.answers["/b"] = answer(body=b"there")
    server.answers["/loop"] = answer("307 Again", Location="/loop")
    assert kind(await request({"url": f"{server.url}/a"})) == "UnexpectedStatus"
    attempted = await request(
        {"url": f"{server.url}/a", "method": "POST", "body": "x", "redirects": 1, "headers": {"Authorization": "me"}}
    )
    assert json.loads(attempted.result or "")["body"] == "there"
    assert (server.asked[-1].method, server.asked[-1].body, server.asked[-1].headers["authorization"]) == (
        "GET",
        b"",
        "me",
    )
    before = len(server.asked)
    assert kind(await request({"url": f"{server.url}/loop", "redirects": 5})) == "UnexpectedStatus"
    assert len(server.asked) - before == 6


async def test_a_redirect_to_another_host_drops_headers(server: Answering) -> None:
    async with answering() as other:
        server.answers["/"] = answer("307 There", Location=f"{other.url}/x")
        other.answers["/x"] = answer()
        secrets = {"Authorization": "me", "X-Api-Key": "k"}
        assert (await request({"url": server.url, "redirects": 1, "headers": secrets})).ending is Ending.SUCCEEDED
        assert not {"authorization", "x-api-key"} & set(other.asked[0].headers)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://127.1:{port}/",
        "http://0x7f000001:{port}/",
        "http://2130706433:{port}/",
        "http://localhost:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://0.0.0.0:{port}/",
        "http://169.254.169.254/latest/meta-data/",
    ],
)
async def test_private_addresses_are_refused_in_any_notation(server: Answering, url: str) -> None:
    server.answers["/"] = answer()
    assert (
        kind(await request({"url": url.format(port=server.port), "timeout_seconds": 5}, config=Config()))
        == "AddressRefused"
    )
    assert server.asked == []


async def test_an_allowed_host_is_reached_at_any_address(server: Answering) -> None:
    server.answers["/"] = answer()
    config = Config(http_allow_hosts="other.internal, LocalHost")
    assert (await request({"url": f"http://localhost:{server.port}/"}, config=config)).ending is Ending.SUCCEEDED
    assert kind(await request({"url": server.url}, config=config)) == "AddressRefused"


async def test_a_name_is_resolved_once_and_only_that_address_is_used(server: Answering) -> None:
    """A name that resolves to a public address at the check, and to ours at the connection."""
    server.answers["/"] = answer()
    asked: list[str] = []

    async def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    guard = AddressPolicy(Config(http_allow_hosts="rebound.example"), resolver)
    attempted = await request({"url": f"http://rebound.example:{server.port}/"}, guard=guard)
    assert attempted.ending is Ending.SUCCEEDED
    assert asked == ["rebound.example"]
    assert server.asked[0].headers["host"] == f"rebound.example:{server.port}"


async def test_one_private_address_of_a_name_refuses_the_name(server: Answering) -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return ["93.184.215.14", "127.0.0.1"]

    assert (
        kind(await request({"url": f"http://mixed.example:{server.port}/"}, guard=AddressPolicy(Config(), resolver)))
        == "AddressRefused"
    )
    assert server.asked == []


async def test_a_redirect_to_a_private_address_is_refused(server: Answering) -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    server.answers["/"] = answer("302 Found", Location="http://169.254.169.254/latest/")
    guard = AddressPolicy(Config(http_allow_hosts="good.example"), resolver)
    assert (
        kind(await request({"url": f"http://good.example:{server.port}/", "redirects": 3}, guard=guard))
        == "AddressRefused"
    )
    for location in ("file:///etc/passwd", "http://user:pw@good.example/"):
        server.answers["/"] = answer("302 Found", Location=location)
        assert (
            kind(await request({"url": f"http://good.example:{server.port}/", "redirects": 3}, guard=guard))
            == "Invalid"
        )


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://x/",
        "http://user@internal/",
        "http://a:b@c/",
        "http:///x",
        "nonsense",
        "http://[",
    ],
)
async def test_other_urls_are_refused(url: str) -> None:
    assert kind(await request({"url": url})) == "Invalid"


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"url": 1},
        {"url": "http://a", "method": "TRACE"},
        {"url": "http://a", "headers": {"X": "a\r\nHost: b"}},
        {"url": "http://a", "headers": {"X\r\nY": "a"}},
        {"url": "http://a", "headers": {"X": "nul \0"}},
        {"url": "http://a", "headers": {"Host": "b"}},
        {"url": "http://a", "headers": {"Transfer-Encoding": "chunked"}},
        {"url": "http://a", "headers": {"Proxy-Authorization": "b"}},
        {"url": "http://a", "expected_status": "ok"},
        {"url": "http://a", "expected_status": []},
        {"url": "http://a", "expected_status": 99},
        {"url": "http://a", "redirects": 6},
        {"url": "http://a", "timeout_seconds": 0},
        {"url": "http://a", "more": 1},
    ],
)
async def test_an_invalid_payload_is_refused(payload: dict[str, Any]) -> None:
    ended = await request(payload)
    assert (kind(ended), ended.is_retryable) == ("Invalid", False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("93.184.215.14", True),
        ("2606:2800:21f:cb07::1", True),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("127.0.0.1", False),
        ("0.0.0.0", False),
        ("169.254.169.254", False),
        ("168.63.129.16", False),
        ("192.0.0.192", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("240.0.0.1", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fd00:ec2::254", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
        ("2001:0:53aa:64c:0:0:80ff:fffe", False),
    ],
)
def test_public_addresses_are_recognized(text: str, expected: bool) -> None:
    assert is_public(ipaddress.ip_address(text)) is expected


class TestTls:
    """TLS to a checked address: the certificate must match the name."""

    @pytest.fixture
    def authority(self, tmp_path: Path) -> Authority:
        return Authority(tmp_path)

    async def ask(
        self, authority: Authority, names: str, url: str = "https://name.example", *, is_self_signed: bool = False
    ) -> Attempted:
        async def resolver(host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        config = Config(http_allow_private=True, http_ca_file=str(authority.certificate))
        async with answering(authority.server(names, is_self_signed=is_self_signed)) as server:
            server.answers["/"] = answer()
            attempted = await request(
                {"url": f"{url}:{server.port}/"}, config=config, guard=AddressPolicy(config, resolver)
            )
            assert len(server.asked) == (attempted.ending is Ending.SUCCEEDED)
        return attempted

    async def test_the_certificate_must_match_the_name_and_not_the_address(self, authority: Authority) -> None:
        assert (await self.ask(authority, "DNS:name.example")).ending is Ending.SUCCEEDED
        assert (await self.ask(authority, "IP:127.0.0.1", "https://127.0.0.1")).ending is Ending.SUCCEEDED

    @pytest.mark.parametrize("names", ["DNS:other.example", "IP:127.0.0.1"])
    async def test_another_name_is_refused_although_the_address_is_right(
        self, authority: Authority, names: str
    ) -> None:
        attempted = await self.ask(authority, names)
        assert kind(attempted) == "ConnectError"
        assert attempted.error is not None
        assert "CERTIFICATE_VERIFY_FAILED" in attempted.error.message

    async def test_a_self_signed_certificate_is_refused(self, authority: Authority) -> None:
        attempted = await self.ask(authority, "DNS:name.example", is_self_signed=True)
        assert kind(attempted) == "ConnectError"

    @pytest.mark.parametrize("content", [None, "no certificate"])
    def test_an_invalid_file_of_authorities_is_reported_at_startup(self, tmp_path: Path, content: str | None) -> None:
        path = tmp_path / "ca.pem"
        if content is not None:
            path.write_text(content)
        with pytest.raises(ConfigurationError, match="http_ca_file"):
            http(Config(http_ca_file=str(path)), FakeClock())
