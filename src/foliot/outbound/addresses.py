"""Decides which addresses the task `http` and the channels of alerts may connect to.

A host is resolved once, each of its addresses is checked, and the request goes to one of those. Neither a name that
resolves differently the second time (DNS rebinding) nor an unusual spelling of an address gets past the check.
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

# Globally routable by their numbers, but metadata services of Azure and Oracle. 64:ff9b::/96 and 2002::/16 embed an
# IPv4 address.
PROVIDERS = (ipaddress.ip_network("168.63.129.16/32"), ipaddress.ip_network("192.0.0.0/24"))
TRANSLATED = ipaddress.ip_network("64:ff9b::/96")


class AddressRefused(Exception):
    """The host is, or resolves to, an address that is not allowed."""


class HostNotFound(Exception):
    """The host's name could not be resolved."""


async def resolve(host: str, port: int) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise HostNotFound(f"{host!r} could not be resolved: {error}") from None
    # The zone of a link-local IPv6 address is dropped, since the address is refused anyway.
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))


class AddressPolicy:
    def __init__(self, config: Config, resolver: Resolver = resolve) -> None:
        self._allows_private = config.http_allow_private
        self._allowed_hosts = {name.strip().lower().strip("[]") for name in config.http_allow_hosts.split(",")} - {""}
        self._resolver = resolver

    async def addresses_of(self, host: str, port: int) -> list[str]:
        """The addresses of the host, in the resolver's order. Refuses the host if a single address is not allowed."""
        found = await self._resolver(host, port)
        if not found:
            raise HostNotFound(f"{host!r} has no address")
        if not self._allows_private and host.lower().rstrip(".") not in self._allowed_hosts:
            for text in found:
                if not is_public(ipaddress.ip_address(text)):
                    raise AddressRefused(
                        f"{host!r} resolves to {text}, which is not public; "
                        "add the host to http_allow_hosts, or set http_allow_private"
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
