"""`Client`: Foliot's HTTP API, called from plain synchronous code.

    with Client.from_environment() as client:
        job = client.create_job({"task": "send_invoice", "payload": {"customer_id": 7}}).document
        client.wait_for_job(job["id"])

A refusal of the server is raised as the same error that the server raised. An answer that never came is `Unreachable`; its `is_doubtful`
says whether the request may have been carried out all the same.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import SplitResult, quote, urlsplit

import httpx
import msgspec

from foliot.clock import SystemClock, block
from foliot.config import without_password
from foliot.errors import (
    ConfigurationError,
    Conflict,
    FoliotError,
    Invalid,
    Malformed,
    NotFound,
    StoreUnavailable,
    TooLarge,
    UnknownTask,
    Unreachable,
)
from foliot.triggers.cron_fields import CronError

DEFAULT_URL = "http://127.0.0.1:8000"
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
PAGE = 200
ENDED = frozenset({"completed", "failed", "cancelled", "skipped"})
# A server that is restarted or fails over is back by then.
PATIENCE_SECONDS = 30.0
FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS = 0.05, 1.0
# A query or a fragment has no place in front of a path.
ADDRESS = re.compile(r"[^\s\x00-\x1f?#]+")
TOKEN = re.compile(r"[\x21-\x7e]+")
# A code is finer than a status, but one that is newer than this client is not known here.
ERRORS_BY_CODE: Mapping[str, type[FoliotError]] = {kind.code: kind for kind in (UnknownTask, CronError)}
ERRORS: Mapping[int, type[FoliotError]] = {
    400: Malformed, 404: NotFound, 409: Conflict, 413: TooLarge, 415: Invalid, 422: Invalid, 503: StoreUnavailable,
}  # fmt: skip


class Document(dict[str, Any]):
    """A JSON object of the server's. A field that it should have and has not is the server's fault, and is said to be."""

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


class Page(msgspec.Struct, frozen=True):
    """Items are handed on as they are, so that no number loses a digit on the way."""

    items: list[msgspec.Raw]
    next: str | None = None


class Client:
    """Use as a context manager; it keeps its connection from one request to the next."""

    def __init__(self, url: str = DEFAULT_URL, *, token: str = "", answer_seconds: float = ANSWER_SECONDS) -> None:
        parts = _checked_url(url)
        if token and not TOKEN.fullmatch(token):
            # Not quoted: it is a secret.
            raise ConfigurationError("FOLIOT_TOKEN: a token has no blanks, line ends or letters beyond ASCII in it")
        self._shown_url = without_password(url)
        self._answer_seconds = answer_seconds
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(answer_seconds, connect=CONNECT_SECONDS),
            # A proxy for the outside world can't reach this machine's own loopback interface.
            trust_env=not _is_loopback(parts.hostname or ""),
        )

    @classmethod
    def from_environment(cls) -> Self:
        """The server that FOLIOT_URL names, with the token in FOLIOT_TOKEN if there is one."""
        return cls(os.environ.get("FOLIOT_URL") or DEFAULT_URL, token=os.environ.get("FOLIOT_TOKEN", ""))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def create_job(self, job: Mapping[str, Any]) -> Answer:
        """Creates a job of the API's own fields, one-off or recurring."""
        return self._answer("POST", "/v1/jobs", job)

    def get_job(self, reference: str) -> Answer:
        return self._answer("GET", _path_of(reference))

    def list_jobs(self) -> Answer:
        """All recurring jobs, by name, in the shape of one page."""
        items = [item for page in self._pages() for item in page.items]
        return self._understood(msgspec.json.encode(Page(items)))

    def delete_job(self, reference: str) -> None:
        self._send("DELETE", _path_of(reference))

    def pause_job(self, reference: str, *, reason: str | None = None, until: str | None = None) -> Answer:
        given = {"reason": reason, "until": until}
        return self._answer("POST", _path_of(reference, "/pause"), {name: value for name, value in given.items() if value is not None})

    def resume_job(self, reference: str) -> Answer:
        return self._answer("POST", _path_of(reference, "/resume"))

    def trigger_job(self, reference: str) -> Answer:
        return self._answer("POST", _path_of(reference, "/trigger"))

    def backfill_job(self, reference: str, backfill: Mapping[str, Any]) -> Answer:
        """Runs the ticks `from` one instant `to` another; with `dry_run`, only says which."""
        return self._answer("POST", _path_of(reference, "/backfill"), backfill)

    def cancel_run(self, run_id: str, *, reason: str | None = None, force: bool = False) -> Answer:
        return self._answer("POST", _path_of(run_id, "/cancel"), {"force": force} | ({} if reason is None else {"reason": reason}))

    def list_ticks(self, reference: str, *, limit: int) -> Answer:
        """The latest ticks with what became of each, latest first."""
        return self._answer("GET", _path_of(reference, "/ticks"), query={"limit": limit})

    def next_ticks(self, reference: str, *, count: int) -> Answer:
        return self._answer("GET", _path_of(reference, "/next"), query={"count": count})

    def wait_for_job(self, job_id: str) -> Answer:
        """The one-off job once it has ended, well or not. A server that is away for a while is waited for, too."""
        clock, pause, lost_at = SystemClock(), FIRST_LOOK_SECONDS, None
        while True:
            try:
                answer = self.get_job(job_id)
            except (Unreachable, StoreUnavailable):
                lost_at = clock.monotonic() if lost_at is None else lost_at
                if clock.monotonic() - lost_at > PATIENCE_SECONDS:
                    raise
            else:
                lost_at = None
                if answer.document["status"] in ENDED:
                    return answer
            block(pause)
            pause = min(pause * 1.5, LAST_LOOK_SECONDS)

    def _pages(self) -> Iterator[Page]:
        after: str | None = ""
        while after is not None:
            content = self._send("GET", "/v1/jobs", query={"after": after, "limit": PAGE})
            try:
                page = msgspec.json.decode(content, type=Page)
            except (msgspec.DecodeError, RecursionError):
                raise self._foreign("something else than a list of jobs") from None
            yield page
            after = page.next

    def _answer(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, str | int] | None = None
    ) -> Answer:
        return self._understood(self._send(method, path, body, query))

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, str | int] | None = None) -> bytes:
        """The body of a good answer. Everything else is raised."""
        is_reading = method == "GET"
        sent: dict[str, Any] = {} if body is None else {"content": _encode(body), "headers": {"Content-Type": "application/json"}}
        try:
            answer = self._http.request(method, path, params=query, **sent)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol):
            raise Unreachable(
                f"no Foliot answers at {self._shown_url}; start one with `foliot up`, or set FOLIOT_URL to where it is"
            ) from None
        except httpx.HTTPError as error:
            raise self._lost(error, is_doubtful=not is_reading) from None
        if not answer.is_success:
            raise self._refusal(answer)
        return answer.content

    def _lost(self, error: httpx.HTTPError, *, is_doubtful: bool) -> Unreachable:
        if isinstance(error, httpx.TimeoutException):
            what = f"{self._shown_url} did not answer within {self._answer_seconds:g} s"
        else:
            what = f"{self._shown_url}: the connection broke off before there was an answer ({type(error).__name__})"
        return Unreachable(f"{what}; what was asked may have been done all the same" if is_doubtful else what, is_doubtful=is_doubtful)

    def _refusal(self, answer: httpx.Response) -> FoliotError:
        try:
            problem = msgspec.json.decode(answer.content, type=Problem)
        except msgspec.DecodeError:
            return self._foreign(f"{answer.status_code} {answer.reason_phrase}")
        kind = ERRORS_BY_CODE.get(problem.code) or ERRORS.get(answer.status_code, FoliotError)
        return kind(problem.detail, field=problem.field) if issubclass(kind, Invalid) else kind(problem.detail)

    def _understood(self, content: bytes) -> Answer:
        try:
            document = json.loads(content, object_hook=Document)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, Document):
            raise self._foreign("something else than a JSON object")
        return Answer(content, document)

    def _foreign(self, what: str) -> FoliotError:
        return FoliotError(f"{self._shown_url} answered {what}, and not in the way Foliot does; is FOLIOT_URL right?")


def _path_of(reference: str, rest: str = "") -> str:
    """The path of a job. Names that no path can hold are in use for no job."""
    try:
        segment = quote(reference, safe="")
    except UnicodeEncodeError:
        segment = ""
    if segment in ("", ".", "..") or "/" in reference:
        raise NotFound(f"there is no job {reference!r}")
    return f"/v1/jobs/{segment}{rest}"


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, RecursionError) as error:
        raise Invalid(f"this can't be written as JSON: {error}") from None


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
