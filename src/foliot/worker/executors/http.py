"""The built-in task `http`: sends one request and stores the response.

    {"url": "https://example.org/hook", "method": "POST", "body": {"order": 7}, "expected_status": [200, 202]}

A connection error or an unexpected status fails the attempt, which may be retried; `Retry-After` then sets the delay.
`http_addresses.py` decides which addresses it may connect to. Bodies are capped as they are read and never
decompressed, so that a small body cannot become a large one.
"""

from __future__ import annotations

import asyncio
import email.utils
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
from msgspec import UNSET

from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import ConfigurationError, Invalid
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.model.payloads import HttpPayload, payload_of
from foliot.sdk.context import Context
from foliot.worker.executors.base import Executor, invalid_payload
from foliot.worker.executors.http_addresses import AddressPolicy, AddressRefused, HostNotFound

ABOUT_THE_BODY = frozenset({"accept", "accept-encoding", "content-type", "user-agent"})
KEPT_HEADERS = ("content-type", "content-length", "date", "etag", "last-modified", "location", "retry-after")
RETRY_AFTER_MAX_SECONDS = 86_400.0
REDIRECTS = frozenset({301, 302, 303, 307, 308})


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


def http(config: Config, clock: Clock, policy: AddressPolicy | None = None) -> Executor:
    checked, limit, trusted = policy or AddressPolicy(config), config.http_body_max_bytes, config.http_ca_file
    if trusted:
        # Reports a bad file at startup rather than at the first request.
        tls(trusted)

    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            asked = payload_of(payload, HttpPayload)
        except Invalid as error:
            return invalid_payload(error)
        try:
            async with asyncio.timeout(asked.timeout_seconds):
                response = await follow(asked, checked, limit, trusted)
        except TimeoutError:
            return failed("HttpTimeout", f"no complete response within {asked.timeout_seconds:g} s")
        except (Invalid, AddressRefused, HostNotFound) as error:
            return failed(type(error).__name__, str(error))
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return failed(type(error).__name__, str(error) or "the connection failed")
        context.write(f"{asked.method} {asked.url}: {response.status} {response.phrase}\n".encode())
        if asked.expects(response.status):
            return Attempted(Ending.SUCCEEDED, result=msgspec.json.encode(result_of(response)).decode())
        context.write(response.body)
        expected = msgspec.json.encode(asked.expected_status).decode().strip('"')
        return failed(
            "UnexpectedStatus",
            f"{response.status} {response.phrase}, expected {expected}",
            retry_after(response.headers, clock),
        )

    return execute


def failed(kind: str, message: str, delay_seconds: float | None = None) -> Attempted:
    return Attempted(Ending.FAILED, error=error_of(kind, message), delay_seconds=delay_seconds)


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


def result_of(response: Response) -> dict[str, Any]:
    found: dict[str, Any] = {
        "status": response.status,
        "headers": {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers},
        "body": body_of(response),
    }
    return found if response.is_whole else found | {"truncated": True}


def body_of(response: Response) -> Any:
    """Decoded JSON if the content type says so; text otherwise."""
    if response.is_whole and re.match(r"application/([\w.+-]*\+)?json\b", response.headers.get("content-type", "")):
        try:
            return msgspec.json.decode(response.body)
        except (msgspec.DecodeError, RecursionError):
            pass
    return response.body.decode("utf-8", "replace")


async def follow(asked: HttpPayload, policy: AddressPolicy, limit: int, ca_file: str) -> Response:
    content, headers = encoded(asked)
    request = Request(asked.method, url_of(asked.url), headers, content)
    for left in range(asked.redirects, -1, -1):
        response = await send(request, policy, limit, ca_file)
        location = response.headers.get("location")
        if response.status not in REDIRECTS or not location or not left:
            break
        request = redirected(request, response.status, url_of(str(request.url.join(location))))
    return response


def encoded(asked: HttpPayload) -> tuple[bytes | None, dict[str, str]]:
    # Uncompressed: the body is stored as it arrives.
    headers = {"accept": "*/*", "user-agent": "foliot", "accept-encoding": "identity"}
    content = None
    if isinstance(asked.body, str):
        content = asked.body.encode("utf-8", "backslashreplace")
        headers["content-type"] = "text/plain; charset=utf-8"
    elif asked.body is not UNSET:
        content = msgspec.json.encode(asked.body)
        headers["content-type"] = "application/json"
    return content, headers | {name.lower(): value for name, value in asked.headers.items()}


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


def redirected(request: Request, status: int, url: httpx.URL) -> Request:
    """Like browsers: 303, and 301 and 302 of a POST, become a GET. Headers may hold secrets and are not sent to another
    host."""
    method, content, headers = request.method, request.content, dict(request.headers)
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        method, content = "GET", None
        headers.pop("content-type", None)
    if (url.scheme, url.host, url.port) != (request.url.scheme, request.url.host, request.url.port):
        headers = {name: value for name, value in headers.items() if name in ABOUT_THE_BODY}
    return Request(method, url, headers, content)


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
