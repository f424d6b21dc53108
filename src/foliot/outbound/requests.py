"""Sends one HTTP request to a checked address, and reads a bounded part of the response.

The connection goes to an address that `addresses.py` has checked, while TLS verifies the name of the host. Redirects
are not followed. Bodies are capped as they are read and never decompressed, so that a small body cannot become a large
one. The caller sets the time limit.
"""

from __future__ import annotations

import email.utils
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import cache
from urllib.parse import urlsplit

import httpx

from foliot.clock import Clock
from foliot.errors import ConfigurationError, Invalid
from foliot.outbound.addresses import AddressPolicy, HostNotFound

RETRY_AFTER_MAX_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    url: httpx.URL
    headers: Mapping[str, str]
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    phrase: str
    headers: httpx.Headers
    body: bytes
    is_whole: bool


def url_of(text: str) -> httpx.URL:
    try:
        parts, url = urlsplit(text), httpx.URL(text)
    except (ValueError, httpx.InvalidURL) as error:
        raise Invalid(f"`url` {text!r}: {error}", field="url") from None
    if url.scheme not in ("http", "https"):
        raise Invalid(f"`url`: the scheme must be http or https, not {url.scheme!r}", field="url")
    if parts.username is not None or url.userinfo:
        raise Invalid("`url` must not hold a user or password; set the header Authorization instead", field="url")
    if not url.host:
        raise Invalid(f"`url` {text!r} names no host", field="url")
    return url


async def send(request: Request, policy: AddressPolicy, limit: int, ca_file: str) -> Response:
    """Connects to a checked address. TLS verifies the host name."""
    host = request.url.host
    addresses = await policy.addresses_of(host, request.url.port or (443 if request.url.scheme == "https" else 80))
    headers = {**request.headers, "host": request.url.netloc.decode("ascii"), "connection": "close"}
    # One client per request, so that no connection is reused for another host name at the same address. No proxies from
    # the environment.
    async with httpx.AsyncClient(verify=tls(ca_file), trust_env=False, timeout=None, follow_redirects=False) as client:  # noqa: S113
        for address in addresses:
            url = request.url.copy_with(host=address)
            name = {"sni_hostname": request.url.raw_host.decode("ascii")}
            built = httpx.Request(request.method, url, headers=headers, content=request.content, extensions=name)
            try:
                response = await client.send(built, stream=True)
            except httpx.ConnectError:
                if address == addresses[-1]:
                    raise
                continue
            try:
                body, is_whole = await read(response, limit)
            finally:
                await response.aclose()
            return Response(response.status_code, response.reason_phrase, response.headers, body, is_whole)
    raise HostNotFound(f"{host!r} has no address")


async def read(response: httpx.Response, limit: int) -> tuple[bytes, bool]:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > limit:
            return bytes(body[:limit]), False
    return bytes(body), True


@cache
def tls(ca_file: str) -> ssl.SSLContext:
    """Cached, because creating a context is slow."""
    context = httpx.create_ssl_context(trust_env=False)
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:
            raise ConfigurationError(f"http_ca_file {ca_file!r}: {error.strerror or error}") from None
    return context


def retry_after(headers: httpx.Headers, clock: Clock) -> float | None:
    """The delay that the server requests, as a number or a date; at most a day."""
    said = headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", said):
        seconds = float(said)
    else:
        try:
            at = email.utils.parsedate_to_datetime(said)
        except (ValueError, IndexError, OverflowError):
            return None
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - clock.now()).total_seconds()
    return min(max(seconds, 0.0), RETRY_AFTER_MAX_SECONDS)
