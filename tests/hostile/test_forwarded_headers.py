"""Headers that claim another client address are believed only from configured proxies."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from foliot.api.security.authentication import WRONG_BURST
from foliot.api.security.client_address import TrustedProxies, limit_key_of
from foliot.config import Config, load
from foliot.errors import ConfigurationError
from foliot.model.tokens import new_token_text
from foliot.store.store import Store
from tests.support.processes import FoliotProcess
from tests.support.secured_app import client_at, secured_app
from tests.support.tokens import bearer, make_token

FORGED = "203.0.113.9"
CLAIMS = {
    "X-Forwarded-For": FORGED,
    "X-Real-IP": FORGED,
    "X-Client-IP": FORGED,
    "True-Client-IP": FORGED,
    "CF-Connecting-IP": FORGED,
    "Forwarded": f"for={FORGED};proto=https;host=evil.example",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "evil.example",
}


def address_of(peer: str, *forwarded: str | bytes, trusted: str = "") -> str | None:
    values = [value if isinstance(value, bytes) else value.encode("latin-1") for value in forwarded]
    headers = [(b"host", b"localhost"), *((b"x-forwarded-for", value) for value in values)]
    return TrustedProxies(trusted).client_of({"client": (peer, 1), "headers": headers})


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "10.0.0.5", "192.0.2.7"])
def test_no_proxy_is_trusted_by_default(peer: str) -> None:
    assert address_of(peer, FORGED) == peer


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        (["192.0.2.7"], "192.0.2.7"),
        (["203.0.113.9, 192.0.2.7"], "192.0.2.7"),
        (["203.0.113.9", "192.0.2.7"], "192.0.2.7"),
        (["203.0.113.9, 192.0.2.7, 10.0.0.6"], "192.0.2.7"),
        (["203.0.113.9", "192.0.2.7, 10.0.0.6"], "192.0.2.7"),
        (["10.0.0.7, 10.0.0.6"], "10.0.0.7"),
        (["192.0.2.7:4711"], "192.0.2.7"),
        (["[2001:db8::1]:4711"], "2001:db8::1"),
        (["[2001:DB8:0::1]"], "2001:db8::1"),
        (["2001:db8::1"], "2001:db8::1"),
        (["::ffff:192.0.2.7"], "192.0.2.7"),
        (["::ffff:10.0.0.6"], "10.0.0.6"),
        ([" 192.0.2.7\t"], "192.0.2.7"),
        ([], "10.0.0.5"),
    ],
)
def test_behind_a_trusted_proxy_the_right_most_address_that_is_not_a_proxy_counts(
    forwarded: list[str], address: str
) -> None:
    assert address_of("10.0.0.5", *forwarded, trusted="10.0.0.0/24, 127.0.0.1") == address
    assert address_of("::ffff:10.0.0.5", *forwarded, trusted="10.0.0.0/24") == address
    # The same header from another address is ignored.
    assert address_of("10.0.1.5", *forwarded, trusted="10.0.0.0/24") == "10.0.1.5"


@pytest.mark.parametrize(
    "entry",
    [
        "", " ", "unknown", "_hidden", "localhost", "192.0.2.7\n",
        "192.0.2.7 ' or 1=1", "<script>alert(1)</script>", "192.0.2.256", "192.0.2",
        "0x7f000001", "2130706433", "192.0.2.7/32", "192.0.2.7:port", "192.0.2.7:123456", "[192.0.2.7", "fe80::1%eth0",
        "::1%<script>", "\x00",
        "\x1b[31m", "\xe4", "for=192.0.2.7", "1" * 5000, "192.0.2.\u0667".encode(), "192.000.002.007",
    ],
)  # fmt: skip
def test_malformed_addresses_are_ignored(entry: str | bytes) -> None:
    assert address_of("10.0.0.5", entry, trusted="10.0.0.5") == "10.0.0.5"
    # Addresses to the left of the proxy's own entry are ignored.
    assert address_of("10.0.0.5", entry, "192.0.2.7", trusted="10.0.0.5") == "192.0.2.7"
    # If a proxy passes it on, the proxy counts as the client.
    assert address_of("10.0.0.5", entry, "10.0.0.6", trusted="10.0.0.0/24") == "10.0.0.6"


def test_an_ipv6_client_is_counted_by_its_network() -> None:
    assert limit_key_of("2001:db8::1") == limit_key_of("2001:db8::ffff:1") != limit_key_of("2001:db8:0:1::1")
    assert limit_key_of("192.0.2.7") != limit_key_of("192.0.2.8")
    assert limit_key_of(None) == ""


@pytest.mark.parametrize(
    "setting", ["proxy.example", "10.0.0.5/8", "10.0.0.5,", "*", "0.0.0.0/0", "::/0", "10.0.0.5;10.0.0.6"]
)
def test_an_invalid_list_of_proxies_is_refused_at_startup(setting: str) -> None:
    with pytest.raises(ConfigurationError, match="trusted_proxies"):
        load(environment={"FOLIOT_TRUSTED_PROXIES": setting})


def test_a_list_of_proxies_names_addresses_and_networks() -> None:
    assert load(environment={"FOLIOT_TRUSTED_PROXIES": " 10.0.0.5, 10.1.0.0/24 ,2001:db8::/64"}).trusted_proxies
    assert Config().trusted_proxies == ""


async def addresses(sql: Any) -> set[str | None]:
    return {row[0] for row in await sql.fetch("select address from foliot.audit")}


async def test_wrong_tokens_are_counted_by_the_real_address(store: Store, sql: Any) -> None:
    async with secured_app(store, trusted_proxies="10.0.0.5") as app:
        async with client_at(app, "127.0.0.1") as forger:
            answers = [await wrong(forger, f"198.51.100.{number}") for number in range(int(WRONG_BURST) + 5)]
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert await addresses(sql) == {"127.0.0.1"}
        # Behind the proxy, each client is counted separately, and headers that clients send themselves are ignored.
        async with client_at(app, "10.0.0.5") as proxy:
            answers = [await wrong(proxy, f"198.51.100.{number}, 192.0.2.1") for number in range(int(WRONG_BURST) + 5)]
            assert answers[-1].status_code == 429
            assert (await wrong(proxy, "192.0.2.1, 192.0.2.2")).status_code == 401
        assert await addresses(sql) == {"127.0.0.1", "192.0.2.1", "192.0.2.2"}


async def wrong(client: httpx.AsyncClient, forwarded: str) -> httpx.Response:
    return await client.get("/v1/runs", headers=bearer(new_token_text()[0]) | CLAIMS | {"X-Forwarded-For": forwarded})


async def test_the_audit_log_holds_only_addresses(store: Store, sql: Any) -> None:
    token = bearer(await make_token(store))
    async with secured_app(store, trusted_proxies="10.0.0.5") as app, client_at(app, "10.0.0.5") as client:
        for value in (
            b"<script>",
            b"'; drop table foliot.audit; --",
            b"\xff\xfe",
            b"192.0.2.7\t<b>",
            b"," * 1000,
            b"evil, 10.0.0.5",
        ):
            headers = [(name.encode(), text.encode()) for name, text in token.items()]
            answer = await client.post("/v1/pause", json={}, headers=[*headers, (b"x-forwarded-for", value)])
            assert answer.status_code == 200
    assert await addresses(sql) == {"10.0.0.5"}


@pytest.mark.process
@pytest.mark.timeout(120)
async def test_a_server_process_trusts_no_proxy_by_default(database_url: str, store: Store, sql: Any) -> None:
    """The HTTP server below the application has its own handling of these headers, and variables that change it."""
    await make_token(store)
    around = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_PORT": "0", "FORWARDED_ALLOW_IPS": "*"}
    async with FoliotProcess("server", environment=around) as server:
        address = (await server.event("ProcessStarted", part="server"))["address"]
        async with httpx.AsyncClient(base_url=address, timeout=20) as client:
            statuses = [
                (await wrong(client, f"198.51.100.{number}")).status_code for number in range(int(WRONG_BURST) + 30)
            ]
    assert statuses[-1] == 429
    assert await addresses(sql) == {"127.0.0.1"}


def test_settings_are_checked_from_any_source() -> None:
    with pytest.raises(msgspec.ValidationError, match="trusted_proxies"):
        msgspec.convert({"trusted_proxies": "10.0.0.5/8"}, Config)
