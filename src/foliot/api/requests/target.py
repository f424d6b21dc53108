"""Requests whose target is a whole URL, as in `GET http://example.com/v1/jobs HTTP/1.1`.

Such a request names its host in the target, and its Host header has to be ignored (RFC 9112, 3.2.2). The HTTP server
below the application drops the host of the target, so the host check of local mode would see a different header.
"""

from __future__ import annotations

import re

HOST = b"host"
AUTHORITY = re.compile(rb"[a-z][a-z0-9+.-]*://([^/?#]*)", re.IGNORECASE)


def use_host_of_target(url: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    """Puts the host of a target that names one in the place of the Host header."""
    if (found := AUTHORITY.match(url)) is None:
        return
    if all(name != HOST for name, _ in headers):
        headers.append((HOST, b""))
    # In place: the request's scope refers to this list.
    headers[:] = [(name, found[1] if name == HOST else value) for name, value in headers]
