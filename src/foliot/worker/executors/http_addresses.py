"""Where the task `http` may connect to: a host is resolved once, each of its addresses is checked, and one of those is
connected to.

So a name that answers differently the second time (DNS rebinding) changes nothing, and neither does another way to
write an address: what counts is what the resolver made of it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address

from foliot.config import Config

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[list[str]]]

# Reachable by the numbers, but of the provider: Azure's and Oracle's metadata. 64:ff9b::/96 and 2002::/16 carry an IPv4
# address.
PROVIDERS = (ipaddress.ip_network("168.63.129.16/32"), ipaddress.ip_network("192.0.0.0/24"))
TRANSLATED = ipaddress.ip_network("64:ff9b::/96")


class AddressRefused(Exception):
    """The host is, or resolves to, something that may not be connected to from here."""


class HostNotFound(Exception):
    """The host's name could not be resolved."""


async def resolve(host: str, port: int) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise HostNotFound(f"{host!r} could not be resolved: {error}") from None
    # Without the zone of a link-local IPv6 address: it is refused anyway.
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))


class AddressPolicy:
    def __init__(self, config: Config, resolver: Resolver = resolve) -> None:
        self._allows_private = config.http_allow_private
        self._allowed_hosts = {name.strip().lower().strip("[]") for name in config.http_allow_hosts.split(",")} - {""}
        self._resolver = resolver

    async def addresses_of(self, host: str, port: int) -> list[str]:
        """What may be connected to, in the resolver's order. One bad address among good ones is an attempt to get
        through."""
        found = await self._resolver(host, port)
        if not found:
            raise HostNotFound(f"{host!r} has no address")
        if not self._allows_private and host.lower().rstrip(".") not in self._allowed_hosts:
            for text in found:
                if not is_public(ipaddress.ip_address(text)):
                    raise AddressRefused(
                        f"{host!r} is at {text}, which is not public: name the host in http_allow_hosts, or set http_allow_private"
                    )
        return found


def is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        within = (
            address.ipv4_mapped
            or address.sixtofour
            or (IPv4Address(int(address) & 0xFFFFFFFF) if address in TRANSLATED else None)
        )
        if within is not None:
            return is_public(within)
        if address.teredo or address.is_site_local:
            return False
    if any(address in network for network in PROVIDERS):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved and not address.is_unspecified
