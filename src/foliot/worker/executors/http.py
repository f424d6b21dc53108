"""The built-in task `http`: sends one request and stores the response.

    {"url": "https://example.org/hook", "method": "POST", "body": {"order": 7}, "expected_status": [200, 202]}

A connection error or an unexpected status fails the attempt, which may be retried; `Retry-After` then sets the delay.
`outbound/` decides which addresses it may connect to, and caps bodies as they are read.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import msgspec
from msgspec import UNSET

from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import Invalid
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.model.payloads import HttpPayload, payload_of
from foliot.outbound.addresses import AddressPolicy, AddressRefused, HostNotFound
from foliot.outbound.requests import Request, Response, retry_after, send, tls, url_of
from foliot.sdk.context import Context
from foliot.worker.executors.base import Executor, invalid_payload

ABOUT_THE_BODY = frozenset({"accept", "accept-encoding", "content-type", "traceparent", "user-agent"})
KEPT_HEADERS = ("content-type", "content-length", "date", "etag", "last-modified", "location", "retry-after")
REDIRECTS = frozenset({301, 302, 303, 307, 308})


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
                response = await follow(asked, checked, limit, trusted, context.traceparent)
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


async def follow(
    asked: HttpPayload, policy: AddressPolicy, limit: int, ca_file: str, traceparent: str | None = None
) -> Response:
    content, headers = encoded(asked, traceparent)
    request = Request(asked.method, url_of(asked.url), headers, content)
    for left in range(asked.redirects, -1, -1):
        response = await send(request, policy, limit, ca_file)
        location = response.headers.get("location")
        if response.status not in REDIRECTS or not location or not left:
            break
        request = redirected(request, response.status, url_of(str(request.url.join(location))))
    return response


def encoded(asked: HttpPayload, traceparent: str | None = None) -> tuple[bytes | None, dict[str, str]]:
    # Uncompressed: the body is stored as it arrives.
    headers = {"accept": "*/*", "user-agent": "foliot", "accept-encoding": "identity"}
    if traceparent is not None:
        headers["traceparent"] = traceparent
    content = None
    if isinstance(asked.body, str):
        content = asked.body.encode("utf-8", "backslashreplace")
        headers["content-type"] = "text/plain; charset=utf-8"
    elif asked.body is not UNSET:
        content = msgspec.json.encode(asked.body)
        headers["content-type"] = "application/json"
    return content, headers | {name.lower(): value for name, value in asked.headers.items()}


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
