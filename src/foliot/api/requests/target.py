"""Requests whose target is a whole URL, as in `GET http://example.com/v1/jobs HTTP/1.1`.

Such a request names its host in the target, and its Host header has to be ignored (RFC 9112, 3.2.2). The HTTP server
below the application drops the host of the target, so the host check of local mode would see a different header.
"""

from __future__ import annotations

import re

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HOST = b"host"
AUTHORITY = re.compile(rb"[a-z][a-z0-9+.-]*://([^/?#]*)", re.IGNORECASE)


class TargetProtocol(HttpToolsProtocol):
    def on_headers_complete(self) -> None:
        if not self.url.startswith(b"/") and (found := AUTHORITY.match(self.url)) is not None:
            if all(name != HOST for name, _ in self.headers):
                self.headers.append((HOST, b""))
            # In place: the request's scope refers to this list.
            self.headers[:] = [(name, found[1] if name == HOST else value) for name, value in self.headers]
        super().on_headers_complete()
