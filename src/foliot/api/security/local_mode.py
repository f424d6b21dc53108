"""Refuses requests that local open mode, which needs no token, must not accept.

A web page in the user's browser can reach the loopback interface too, so trusting that interface is not enough. A
request must name this machine as its host, or a foreign name that was rebound to 127.0.0.1 would get in. It must not
come from a page of another origin. If it has a body, that must be JSON, which a foreign page can't send without asking
first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from foliot.errors import FoliotError, ForeignHost, ForeignOrigin, Malformed, NotJson

# The complete Host header that is accepted. Everything else is foreign: user names, trailing dots, other spellings of
# the same address.
OUR_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::(?P<port>[1-9][0-9]{0,4}))?", re.IGNORECASE | re.ASCII)
PORT_MAX = 65_535
# Values of Sec-Fetch-Site for requests from our own page or directly from the user.
OUR_SITES = frozenset({"same-origin", "none"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Headers that decide about access. With two values it would be unclear which one counts.
ONCE = frozenset({
    b"authorization", b"content-type", b"cookie", b"foliot-csrf", b"foliot-namespace", b"host", b"origin",
    b"sec-fetch-dest", b"sec-fetch-mode", b"sec-fetch-site",
})  # fmt: skip
SHOWN_MAX = 100


def refuse_repeated_headers(headers: Sequence[tuple[bytes, bytes]]) -> FoliotError | None:
    """The error for repeated headers that decide about access; None if there are none."""
    seen = set()
    for name, _ in headers:
        if name in seen and name in ONCE:
            text = name.decode("latin-1")
            return Malformed(f"the header {text} is there more than once; send it once", field=text)
        seen.add(name)
    return None


def refuse_foreign_request(method: str, headers: Mapping[str, str]) -> FoliotError | None:
    """The error for a request that may come from a foreign page or host; None if it does not."""
    host = headers.get("host", "")
    if not is_loopback_host(host):
        return ForeignHost(f"this Foliot serves 127.0.0.1 and localhost only, not {host[:SHOWN_MAX]!r}")
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
        return ForeignOrigin("pages of other origins may not use this API")
    if headers.get("sec-fetch-site", "none") not in OUR_SITES and not is_visit(method, headers):
        return ForeignOrigin("pages of other origins may not use this API")
    return None


def is_visit(method: str, headers: Mapping[str, str]) -> bool:
    """Whether the user followed a link. The answer becomes a page of its own, which the page with the link can't
    read."""
    return (
        method in SAFE_METHODS
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def refuse_unsupported_body(method: str, headers: Mapping[str, str]) -> FoliotError | None:
    """The error for a body of an unsupported type or encoding; None if it is supported."""
    if method in SAFE_METHODS or not _has_body(headers):
        return None
    if not _is_json(headers):
        return NotJson("send the body as Content-Type: application/json")
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        return NotJson("send the body as it is, without a Content-Encoding: compressed bodies are not unpacked")
    return None


def _has_body(headers: Mapping[str, str]) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _is_json(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


@lru_cache(maxsize=256)
def is_loopback_host(host: str) -> bool:
    found = OUR_HOST.fullmatch(host)
    return found is not None and int(found["port"] or 1) <= PORT_MAX
