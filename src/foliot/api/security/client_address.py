"""The address of a request's client.

It is the peer of the connection, unless that is a proxy named in `trusted_proxies`. Such a proxy appends the address it
was called from to `X-Forwarded-For`, so the header is read from its right end: each address on it is believed only
because a trusted proxy wrote it down. The first address that is not a trusted proxy is the client. Everything to the
left of it was sent by the client itself, and means nothing.

No other header is believed: `Forwarded`, `X-Real-IP`, `X-Forwarded-Proto` and the like are ignored, and the server's
own handling of such headers is switched off.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from functools import lru_cache

from starlette.types import Scope

from foliot.config import Network, networks_of

ADDRESS = "foliot.address"
"""Where the address stands in a request's scope. None when it is not known."""
FORWARDED_FOR = b"x-forwarded-for"
# Some proxies write the port as well: 192.0.2.1:4711, [2001:db8::1]:4711.
ENTRY = re.compile(
    r"\[(?P<six>[0-9A-Fa-f:.]{2,45})\](?::[0-9]{1,5})?|(?P<four>[0-9.]{7,15})(?::[0-9]{1,5})?|(?P<bare>[0-9A-Fa-f:.]{2,45})"
)
IPV6_SITE_BITS = 64

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class TrustedProxies:
    def __init__(self, setting: str) -> None:
        self._networks: tuple[Network, ...] = networks_of(setting)

    def client_of(self, scope: Scope) -> str | None:
        peer = scope.get("client")
        if not peer:
            return None
        if not self._networks:
            return _written(str(peer[0]))
        address = _parsed(str(peer[0]))
        if address is None or not self._trusts(address):
            return _written(str(peer[0]))
        for entry in _from_the_right(scope):
            sender = _entry(entry)
            if sender is None:
                # A trusted proxy passed on something that is not an address. The nearest known hop counts as the
                # client.
                break
            address = sender
            if not self._trusts(address):
                break
        return str(address)

    def _trusts(self, address: Address) -> bool:
        return any(address.version == network.version and address in network for network in self._networks)


def limit_key_of(address: str | None) -> str:
    """The key by which limits count an address. A client with IPv6 can use any address of its /64, so all of them count
    as one."""
    found = _parsed(address or "")
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((found, IPV6_SITE_BITS), strict=False))
    return address or ""


def _from_the_right(scope: Scope) -> Iterator[str]:
    for name, value in reversed(scope["headers"]):
        if name == FORWARDED_FOR:
            yield from reversed(value.decode("latin-1").split(","))


def _entry(text: str) -> Address | None:
    found = ENTRY.fullmatch(text.strip(" \t"))
    return None if found is None else _parsed(found["six"] or found["four"] or found["bare"])


@lru_cache(maxsize=1024)
def _written(text: str) -> str:
    """An address in its canonical form; other text unchanged."""
    return str(_parsed(text) or text)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Address | None:
    try:
        # An address may name a network interface, as in fe80::1%eth0, which means nothing on other machines.
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address
