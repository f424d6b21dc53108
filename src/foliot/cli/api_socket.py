"""Binds the API's socket, or explains why it can't or must not."""

from __future__ import annotations

import errno
import ipaddress
import socket

import click

from foliot.config import Config
from foliot.errors import ConfigurationError


def listen(config: Config) -> socket.socket:
    """Binds the configured address. On a public address, TLS is required, because tokens would travel in clear text."""
    host, port = config.host, config.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"host {host!r}: {getattr(error, 'strerror', None) or 'invalid host name'}") from None
    if not is_loopback(str(address[0])) and not config.tls_certificate_file and not config.plain_http_allowed:
        raise ConfigurationError(
            f"host {host!r} can be reached from other machines, and tokens must not travel there unencrypted: set "
            "tls_certificate_file and tls_key_file; or, behind a proxy that terminates TLS, pass --plain-http"
        )
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigurationError(f"port {port} on {host} is already in use; choose another with --port") from None
        raise ConfigurationError(f"can't listen on {host}:{port}: {error.strerror}") from None
    return listening


def is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


plain_http_option = click.option(
    "--plain-http/--no-plain-http",
    "plain_http",
    default=None,
    help="Allow plain HTTP on a public address, behind a proxy that terminates TLS.",
)
