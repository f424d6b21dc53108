"""Binds the API's socket, and says plainly why not when it can't."""

from __future__ import annotations

import errno
import ipaddress
import socket

from foliot.errors import ConfigurationError


def listen(host: str, port: int) -> socket.socket:
    """A bound socket. Until there are tokens, only the loopback interface: this API runs commands for whoever reaches it."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"host {host!r}: {getattr(error, 'strerror', None) or 'not a name of a host'}") from None
    if not ipaddress.ip_address(address[0]).is_loopback:
        raise ConfigurationError(f"host {host!r}: without tokens Foliot listens on the loopback interface only; use 127.0.0.1")
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigurationError(f"port {port} of {host} is in use by another program; choose one with --port") from None
        raise ConfigurationError(f"can't listen on {host}:{port}: {error.strerror}") from None
    return listening
