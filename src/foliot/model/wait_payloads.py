"""The payloads of the built-in tasks that wait for a file, a URL or a row."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from foliot.model.http_headers import check_headers
from foliot.model.urls import check_url
from foliot.validation_errors import form

STATUS_CLASS = form("^[1-5]xx$", "be a class of statuses such as 2xx")
ABSOLUTE_PATH = form(r"^/[^\x00]*$", "be an absolute path")
Parameter = Annotated[str, Meta(max_length=100_000)] | int | float | bool | None
Status = Annotated[int, Meta(ge=100, le=599)]


class PollFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How often it looks, and for how long. Each wait is twice as long as the one before."""

    every_seconds: Annotated[float, Meta(ge=1, le=86_400)] = 10.0
    """The first wait."""
    at_most_seconds: Annotated[float, Meta(ge=1, le=86_400)] = 300.0
    """The longest wait."""
    within_seconds: Annotated[float, Meta(ge=0, le=31_536_000)] = 86_400.0
    """The run fails when the waits are longer than this together."""


class WaitForFilePayload(PollFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    path: Annotated[str, Meta(min_length=1, max_length=4096, pattern=ABSOLUTE_PATH)]
    min_bytes: Annotated[int, Meta(ge=0, le=1_000_000_000_000_000)] = 0


class WaitForUrlPayload(PollFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    url: Annotated[str, Meta(min_length=1, max_length=8000)]
    method: Literal["GET", "HEAD"] = "GET"
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    expected_status: (
        Status | Annotated[tuple[Status, ...], Meta(min_length=1)] | Annotated[str, Meta(pattern=STATUS_CLASS)]
    ) = "2xx"
    timeout_seconds: Annotated[float, Meta(gt=0, le=3600)] = 30.0
    """The time limit of each request."""
    redirects: Annotated[int, Meta(ge=0, le=5)] = 0

    def __post_init__(self) -> None:
        check_url(self.url)
        check_headers(self.headers)


class WaitForRowPayload(PollFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    query: Annotated[str, Meta(min_length=1, max_length=100_000, pattern=r"^[^\x00]*$")]
    """A SELECT. `$1` and so on stand for the parameters."""
    parameters: Annotated[tuple[Parameter, ...], Meta(max_length=100)] = ()
