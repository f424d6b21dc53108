"""The headers of a request, decoded once by `api/security/authentication.py`."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request

HEADERS = "foliot.headers"
"""In a request's scope: its headers by name in lower case. Of a repeated header, the first."""


def header_of(request: Request, name: str) -> str | None:
    headers: Mapping[str, str] | None = request.scope.get(HEADERS)
    # Without authentication in front, as in tests of one part, the framework decodes them.
    return request.headers.get(name) if headers is None else headers.get(name)
