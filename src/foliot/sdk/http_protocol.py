"""Foliot's HTTP API as bytes: what is sent, and what an answer means. Both clients, the plain one and the async one,
speak through it.

A refusal of the server is raised as the same error that the server raised. An answer that never came is `Unreachable`;
its `is_doubtful` says whether the request may have been carried out all the same.
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
    Unreachable,
)
from foliot.model.json_text import encode_finite
from foliot.sdk.jobs import Made
from foliot.triggers.cron_fields import CronError

DEFAULT_URL = "http://127.0.0.1:8000"
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
REPEAT_PAUSES = (0.2, 1.0)
# A query or a fragment has no place in front of a path.
ADDRESS = re.compile(r"[^\s\x00-\x1f?#]+")
TOKEN = re.compile(r"[\x21-\x7e]+")
NAMESPACE = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
NAMESPACE_HEADER = "Foliot-Namespace"
# A code is finer than a status, but one that is newer than this client is not known here.
ERRORS_BY_CODE: Mapping[str, type[FoliotError]] = {
    kind.code: kind for kind in (UnknownTask, CronError, QueueFull, TooManyFollowers, Forbidden)
}
ERRORS: Mapping[int, type[FoliotError]] = {
    400: Malformed, 401: Unauthenticated, 404: NotFound, 409: Conflict, 413: TooLarge, 415: Invalid, 422: Invalid,
    429: Busy, 503: StoreUnavailable,
}  # fmt: skip
# What to do about it, since the server can't know how its caller is told about tokens.
ADVICE: Mapping[type[FoliotError], str] = {
    Unauthenticated: "set FOLIOT_TOKEN to a token of this server",
    Forbidden: "set FOLIOT_TOKEN to a token that may",
}


class Document(dict[str, Any]):
    """A JSON object of the server's. A field that it should have and has not is the server's fault, and is said to
    be."""

    def __missing__(self, name: str) -> Any:
        raise FoliotError(f"the server's answer has no {name!r}; is it a Foliot, and as new as this client?")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said: as it said it, and as Python values."""

    content: bytes
    document: Document


class Problem(msgspec.Struct, frozen=True):
    """The parts of a problem document that are of use here."""

    detail: str
    code: str
    field: str = ""


class Wire:
    """One server, and how it is spoken to."""

    def __init__(self, url: str, *, token: str, answer_seconds: float, namespace: str = "") -> None:
        parts = _checked_url(url)
        if token and not TOKEN.fullmatch(token):
            # Not quoted: it is a secret.
            raise ConfigurationError("FOLIOT_TOKEN: a token has no blanks, line ends or letters beyond ASCII in it")
        if namespace and not NAMESPACE.fullmatch(namespace):
            raise ConfigurationError(
                f"FOLIOT_NAMESPACE {namespace!r}: small letters, digits, _ and - are allowed, up to 63, and a letter or digit first"
            )
        self.url, self.token, self.namespace = url, token, namespace
        self._shown_url = without_password(url)
        self._answer_seconds = answer_seconds
        # A proxy for the outside world can't reach this machine's own loopback interface.
        trust_env = not _is_loopback(parts.hostname or "")
        self.settings: dict[str, Any] = {
            "base_url": url,
            "headers": ({"Authorization": f"Bearer {token}"} if token else {})
            | ({NAMESPACE_HEADER: namespace} if namespace else {}),
            "timeout": httpx.Timeout(answer_seconds, connect=min(CONNECT_SECONDS, answer_seconds)),
            "trust_env": trust_env,
            "verify": _authorities(trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
        }
        """Of an httpx client."""

    def request(self, body: Any = None, query: Mapping[str, str | int] | None = None) -> dict[str, Any]:
        """What httpx is given beside method and path."""
        sent: dict[str, Any] = (
            {} if body is None else {"content": encode(body), "headers": {"Content-Type": "application/json"}}
        )
        return sent | {"params": query}

    def content_of(self, answer: httpx.Response) -> bytes:
        """The body of a good answer. Everything else is raised."""
        if not answer.is_success:
            raise self.refusal(answer)
        return answer.content

    def failure(self, error: httpx.HTTPError, *, is_reading: bool) -> Unreachable:
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError | httpx.UnsupportedProtocol):
            return Unreachable(
                f"no Foliot answers at {self._shown_url}; start one with `foliot up`, or set FOLIOT_URL to where it is"
            )
        if isinstance(error, httpx.TimeoutException):
            what = f"{self._shown_url} did not answer within {self._answer_seconds:g} s"
        else:
            what = f"{self._shown_url}: the connection broke off before there was an answer ({type(error).__name__})"
        is_doubtful = not is_reading
        return Unreachable(
            f"{what}; what was asked may have been done all the same" if is_doubtful else what, is_doubtful=is_doubtful
        )

    def understood(self, content: bytes) -> Answer:
        try:
            document = json.loads(content, object_hook=Document)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, Document):
            raise self.foreign("something else than a JSON object")
        return Answer(content, document)

    def foreign(self, what: str) -> FoliotError:
        return FoliotError(f"{self._shown_url} answered {what}, and not in the way Foliot does; is FOLIOT_URL right?")

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
    """The path of a job, a run or a workflow, or of what else is below `root`. Names that no path can hold are in use
    for none."""
    try:
        segment = quote(reference, safe="")
    except UnicodeEncodeError:
        segment = ""
    if segment in ("", ".", "..") or "/" in reference:
        raise NotFound(f"there is no {kind} {reference!r}")
    return f"{root or f'/v1/{kind}s'}/{segment}{rest}"


def given(**fields: Any) -> dict[str, Any]:
    """Those that say something."""
    return {name: value for name, value in fields.items() if value is not None}


def encode(body: Any) -> bytes:
    try:
        return encode_finite(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"this can't be written as JSON: {error}") from None


def batch_of(jobs: Sequence[Mapping[str, Any]], idempotency_key: str | None) -> dict[str, Any]:
    return {"jobs": list(jobs)} | ({} if idempotency_key is None else {"idempotency_key": idempotency_key})


def made_of(answer: Answer) -> list[Made]:
    """Of an answer to a batch."""
    return [(job["id"], job["created"]) for job in answer.document["items"]]


def pauses_for(body: Mapping[str, Any]) -> tuple[float, ...]:
    """Before each repetition of a request that got no answer. Only one with a key of its own may be repeated
    blindly."""
    return REPEAT_PAUSES if body.get("idempotency_key") is not None else ()


@cache
def _authorities(trust_env: bool, _file: str | None, _directory: str | None) -> ssl.SSLContext:
    """Read once, and not for every client, which async code has one of for each job: that would take 30 ms each
    time."""
    return httpx.create_ssl_context(trust_env=trust_env)


def _seconds(retry_after: str) -> int:
    """The header may hold a date as well; ours do not."""
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
