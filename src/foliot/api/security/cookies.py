"""The cookie of a signed-in browser, and the checks that requests with it must pass.

Browsers attach the cookie to every request for this server, so a foreign page could try to send one. `SameSite=Strict`
is the first defence. The second is here: a change needs the header `Foliot-CSRF`, which a foreign page cannot send, and
the browser's own word that the request comes from a page of this server.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import Scope

from foliot.api.security.local_mode import OUR_SITES, SAFE_METHODS, is_loopback_host, is_visit
from foliot.errors import CrossSite, FoliotError
from foliot.model.session import COOKIE, LIFE

CSRF_HEADER = "foliot-csrf"
ATTRIBUTES = "Path=/; Secure; HttpOnly; SameSite=Strict"
PLAIN_HTTP = (
    "signing in needs HTTPS: over plain HTTP anybody on the network could read the token. "
    "Serve Foliot with tls_certificate_file, or behind a proxy that does TLS"
)


def session_id_in(headers: Mapping[str, str]) -> str | None:
    for part in headers.get("cookie", "").split(";"):
        name, separator, value = part.strip().partition("=")
        if separator and name == COOKIE:
            return value
    return None


def cookie_with(session_id: str) -> str:
    return f"{COOKIE}={session_id}; Max-Age={int(LIFE.total_seconds())}; {ATTRIBUTES}"


def cookie_cleared() -> str:
    return f"{COOKIE}=; Max-Age=0; {ATTRIBUTES}"


def refuse_foreign_page(method: str, headers: Mapping[str, str]) -> FoliotError | None:
    """Why a request with the cookie is refused; None if a page of this server sent it, or the user opened a link."""
    site = headers.get("sec-fetch-site")
    if method in SAFE_METHODS:
        if site is None or site in OUR_SITES or is_visit(method, headers):
            return None
        return CrossSite("pages of other origins may not use the session of this browser")
    if site != "same-origin":
        return CrossSite("with a session, changes must come from a page of this server (Sec-Fetch-Site: same-origin)")
    if CSRF_HEADER not in headers:
        return CrossSite("with a session, changes need the header Foliot-CSRF: 1")
    return None


def sign_in_refusal(scope: Scope, headers: Mapping[str, str]) -> str | None:
    """Says why signing in is impossible over this connection; None if it is possible.

    Browsers send the address of the page as `Origin`, so it also shows HTTPS that ends at a proxy.
    """
    scheme, _, host = headers.get("origin", "").lower().partition("://")
    if not host:
        scheme, host = scope.get("scheme", "http"), headers.get("host", "").lower()
    return None if scheme == "https" or is_loopback_host(host) else PLAIN_HTTP
