"""The networks of proxies that are trusted, and the addresses of other servers."""

from __future__ import annotations

import ipaddress

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks_of(setting: str) -> tuple[Network, ...]:
    """The networks that `trusted_proxies` names. Raises `ValueError`."""
    return tuple(_network(part.strip()) for part in setting.split(",")) if setting.strip() else ()


def host_and_port(setting: str, text: str) -> tuple[str, int]:
    """The host and port of `host:port` or `[::1]:port`. Raises `ValueError` with the name of the setting."""
    host, _, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not host or "/" in host or not (port.isascii() and port.isdigit() and 0 < int(port[:6]) <= 65_535):
        raise ValueError(f"{setting}: {text!r} is not an address; write host:port, such as 127.0.0.1:8125")
    return host, int(port)


def _network(text: str) -> Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(
            f"trusted_proxies: {error}; write addresses and networks such as 10.0.0.5, 10.1.0.0/24 or 2001:db8::/64"
        ) from None
    if network.prefixlen == 0:
        raise ValueError(f"trusted_proxies: {text} matches every address, so anybody could forge one; name the proxies")
    return network
