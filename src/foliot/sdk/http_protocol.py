"""Encodes requests and decodes responses of the HTTP API, for the plain and the async client.

If the server rejects a request, the clients raise the same error as the server. If no answer arrives, they raise
`Unreachable`, whose `is_doubtful` says whether the server may have processed the request.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

import httpx
import msgspec

from foliot.config import without_password
from foliot.errors import (
    Busy,
    ConfigurationError,
    Conflict,
    FoliotError,
    Forbidden,
    Invalid,
    Malformed,
    NotFound,
    QueueFull,
    StoreUnavailable,
    TooLarge,
    TooManyFollowers,
    Unauthenticated,
    UnknownTask,
    UnknownWorker,
    Unreachable,
)
from foliot.model.json_text import encode_finite
from foliot.sdk.current_trace import current_traceparent
from foliot.sdk.jobs import Made
from foliot.triggers.cron_fields import CronError

DEFAULT_URL = "http://127.0.0.1:8000"
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
REPEAT_PAUSES = (0.2, 1.0)
# Without a query or fragment, because paths are appended.
ADDRESS = re.compile(r"[^\s\x00-\x1f?#]+")
TOKEN = re.compile(r"[\x21-\x7e]+")
NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
NAMESPACE_HEADER = "Foliot-Namespace"
# A code is more specific than a status, but a newer server may send codes that are unknown here.
ERRORS_BY_CODE: Mapping[str, type[FoliotError]] = {
    kind.code: kind for kind in (UnknownTask, UnknownWorker, CronError, QueueFull, TooManyFollowers, Forbidden)
}
ERRORS: Mapping[int, type[FoliotError]] = {
    400: Malformed, 401: Unauthenticated, 404: NotFound, 409: Conflict, 413: TooLarge, 415: Invalid, 422: Invalid,
    429: Busy, 503: StoreUnavailable,
}  # fmt: skip
# The server can't know how its callers configure their token.
ADVICE: Mapping[type[FoliotError], str] = {
    Unauthenticated: "set FOLIOT_TOKEN to a token of this server",
    Forbidden: "set FOLIOT_TOKEN to a token with a sufficient role",
}


class Document(dict[str, Any]):
    """A JSON object from the server. A missing field raises an error that names it."""

    def __missing__(self, name: str) -> Any:
        raise FoliotError(f"the server's response has no field {name!r}; is it a Foliot server of this version?")


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: the body as sent, and decoded."""

    content: bytes
    document: Document
    etag: str = ""


class Problem(msgspec.Struct, frozen=True):
    """The fields of a problem document that clients use."""

    detail: str
    code: str
    field: str = ""


class Wire:
    """The protocol with one server."""

    def __init__(self, url: str, *, token: str, answer_seconds: float, namespace: str = "") -> None:
        parts = _checked_url(url)
        if token and not TOKEN.fullmatch(token):
            # Do not show the token: it is a secret.
            raise ConfigurationError(
                "FOLIOT_TOKEN: must consist of visible ASCII characters, without spaces or line breaks"
            )
        if namespace and not NAMESPACE.fullmatch(namespace):
            raise ConfigurationError(
                f"FOLIOT_NAMESPACE {namespace!r}: must be up to 63 lower-case letters, digits, _ and -, and begin with "
                "a letter or digit"
            )
        self.url, self.token, self.namespace = url, token, namespace
        self._shown_url = without_password(url)
        self._answer_seconds = answer_seconds
        # A proxy can't reach this machine's loopback interface.
        trust_env = not _is_loopback(parts.hostname or "")
        self.settings: dict[str, Any] = {
            "base_url": url,
            "headers": ({"Authorization": f"Bearer {token}"} if token else {})
            | ({NAMESPACE_HEADER: namespace} if namespace else {}),
            "timeout": httpx.Timeout(answer_seconds, connect=min(CONNECT_SECONDS, answer_seconds)),
            "trust_env": trust_env,
            "verify": _authorities(trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
        }
        """Arguments for an httpx client."""

    def request(
        self, body: Any = None, query: Mapping[str, str | int] | None = None, if_match: str = ""
    ) -> dict[str, Any]:
        """Arguments for an httpx request."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        headers |= {"If-Match": if_match} if if_match else {}
        if body is not None and (traceparent := current_traceparent()) is not None:
            headers["traceparent"] = traceparent
        content = {} if body is None else {"content": encode(body)}
        return {**content, "headers": headers, "params": query}

    def content_of(self, answer: httpx.Response) -> bytes:
        """Returns the body of a successful response. Raises all errors."""
        if not answer.is_success:
            raise self.refusal(answer)
        return answer.content

    def failure(self, error: httpx.HTTPError, *, is_reading: bool) -> Unreachable:
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError | httpx.UnsupportedProtocol):
            return Unreachable(
                f"no Foliot answers at {self._shown_url}; start one with `foliot up`, or set FOLIOT_URL to its address"
            )
        if isinstance(error, httpx.TimeoutException):
            what = f"{self._shown_url} did not answer within {self._answer_seconds:g} s"
        else:
            what = f"{self._shown_url}: the connection was closed before an answer arrived ({type(error).__name__})"
        is_doubtful = not is_reading
        return Unreachable(
            f"{what}; the request may have been processed" if is_doubtful else what, is_doubtful=is_doubtful
        )

    def understood(self, content: bytes, etag: str = "") -> Answer:
        try:
            document = json.loads(content, object_hook=Document)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, Document):
            raise self.foreign("a response that is not a JSON object")
        return Answer(content, document, etag)

    def foreign(self, what: str) -> FoliotError:
        return FoliotError(f"{self._shown_url} sent {what}, unlike a Foliot server; check FOLIOT_URL")

    def refusal(self, answer: httpx.Response) -> FoliotError:
        try:
            problem = msgspec.json.decode(answer.content, type=Problem)
        except msgspec.DecodeError:
            return self.foreign(f"{answer.status_code} {answer.reason_phrase}")
        kind = ERRORS_BY_CODE.get(problem.code) or ERRORS.get(answer.status_code, FoliotError)
        if issubclass(kind, Invalid):
            return kind(problem.detail, field=problem.field)
        if issubclass(kind, Busy):
            return kind(problem.detail, retry_after=_seconds(answer.headers.get("Retry-After", "")))
        return kind(f"{problem.detail}; {ADVICE[kind]}" if kind in ADVICE else problem.detail)


def path_of(reference: str, rest: str = "", *, kind: str = "job", root: str = "") -> str:
    """The path of a job, a run, a workflow, or a resource below `root`. Raises `NotFound` for an impossible name."""
    try:
        segment = quote(reference, safe="")
    except UnicodeEncodeError:
        segment = ""
    if segment in ("", ".", "..") or "/" in reference:
        raise NotFound(f"there is no {kind} {reference!r}")
    return f"{root or f'/v1/{kind}s'}/{segment}{rest}"


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def encode(body: Any) -> bytes:
    try:
        return encode_finite(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"can't be written as JSON: {error}") from None


def batch_of(jobs: Sequence[Mapping[str, Any]], idempotency_key: str | None) -> dict[str, Any]:
    return {"jobs": list(jobs)} | ({} if idempotency_key is None else {"idempotency_key": idempotency_key})


def made_of(answer: Answer) -> list[Made]:
    """The id of each job of a batch, and whether it is new."""
    return [(job["id"], job["created"]) for job in answer.document["items"]]


def pauses_for(body: Mapping[str, Any]) -> tuple[float, ...]:
    """Pauses before retries of a request without an answer. Only a request with an idempotency key is retried."""
    return REPEAT_PAUSES if body.get("idempotency_key") is not None else ()


@cache
def _authorities(trust_env: bool, _file: str | None, _directory: str | None) -> ssl.SSLContext:
    """Cached, because it takes 30 ms and async code creates a client for each job."""
    return httpx.create_ssl_context(trust_env=trust_env)


def _seconds(retry_after: str) -> int:
    """Parses Retry-After. Foliot sends seconds, never a date."""
    return int(retry_after) if re.fullmatch(r"[0-9]{1,6}", retry_after) else 1


def _checked_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and ADDRESS.fullmatch(url) is not None
        httpx.URL(url)
        _ = parts.port
    except (ValueError, httpx.InvalidURL):
        is_usable = False
    if not is_usable:
        raise ConfigurationError(f"FOLIOT_URL {without_password(url)!r}: must look like {DEFAULT_URL}")
    return parts


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
