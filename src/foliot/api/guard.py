"""The door of local open mode, where nobody has to say who they are.

A web page in the user's browser can reach the loopback interface too, so trusting that interface is not enough: a request must name us
as its host (else a foreign name rebound to 127.0.0.1 would do), must not come from a page of another origin, and if it has a body that
changes things, it must be JSON, which a foreign page can't send without asking first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from foliot.errors import FoliotError, ForeignHost, ForeignOrigin, NotJson

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
# What a browser says of where a request came from: our own page, or the user.
OUR_SITES = frozenset({"same-origin", "none"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def refuse_foreign(method: str, headers: Mapping[str, str]) -> FoliotError | None:
    """Why this request is not let in where nobody has to say who they are; None when it is."""
    host = headers.get("host", "")
    if not _is_loopback(host):
        return ForeignHost(f"this Foliot serves 127.0.0.1 and localhost only, not {host!r}")
    origin = headers.get("origin")
    is_foreign = origin is not None and origin not in (f"http://{host}", f"https://{host}")
    if is_foreign or (method not in SAFE_METHODS and headers.get("sec-fetch-site", "none") not in OUR_SITES):
        return ForeignOrigin("pages of other origins may not use this API")
    return None


def refuse_other_bodies(method: str, headers: Mapping[str, str]) -> FoliotError | None:
    """Why this body is not read, whoever sent it; None when it is."""
    if method not in SAFE_METHODS and _has_body(headers) and not _is_json(headers):
        return NotJson("send the body as Content-Type: application/json")
    return None


def _has_body(headers: Mapping[str, str]) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _is_json(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


@lru_cache(maxsize=256)
def _is_loopback(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").hostname in LOOPBACK_NAMES
    except ValueError:
        return False
