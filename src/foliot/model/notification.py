"""Notifications of a run's end: a URL, and the endings that it wants.

A notification is a run of the task `http`, created in the transaction that ends the run: see the trigger `notify` on
history. Its id derives from the id of that run, so each can be found from the other at no cost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
from msgspec import Meta

from foliot.model.http_headers import NAMES_FORM, VALUE_FORM, check_headers

Ending = Literal["completed", "failed", "cancelled", "skipped", "lost", "timeout"]
"""A status; or what made a run fail in the end: its worker was lost, or its time was up."""
NOTIFICATIONS_MAX = 5
HEADERS_MAX = 20
# An address as the API's document describes it; names in other letters than ASCII are taken too.
URL_FORM = r"^https?://(?:[!$-.0-9;=A-Z_a-z~]+@)?(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[::1\])(?::[0-9]{1,4})?(?:[/?#][!-~]*)?$"


class Notification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An address that gets a POST with a small JSON document when the run has ended for good."""

    url: Annotated[str, Meta(min_length=1, max_length=2000, extra_json_schema={"format": "uri", "pattern": URL_FORM})]
    on: Annotated[tuple[Ending, ...], Meta(min_length=1, max_length=10)] = ("failed",)
    headers: Annotated[
        dict[str, Annotated[str, Meta(extra_json_schema=VALUE_FORM)]],
        Meta(max_length=HEADERS_MAX, extra_json_schema=NAMES_FORM),
    ] = msgspec.field(default_factory=dict)
    queue: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=200,
                pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$(?!\n)",
                description="By default the queue of the run.",
            ),
        ]
        | None
    ) = None

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            is_usable = (
                parts.scheme in ("http", "https") and bool(parts.hostname) and not any(one <= " " for one in self.url)
            )
        except ValueError:
            is_usable = False
        if not is_usable:
            raise ValueError("`url` must begin with http:// or https:// and name a host")
        check_headers(self.headers)


def notification_ids(
    run_id: UUID, options: Any, state: str, reason: str | None, finished_at: datetime | None
) -> list[UUID]:
    """The runs that tell of this one's end; none before it has ended. The trigger makes them by the same rule."""
    asked = options.get("notify") if isinstance(options, Mapping) else None
    if finished_at is None or not asked:
        return []
    status = "completed" if state == "succeeded" else state
    return [
        notification_id(run_id, place, finished_at)
        for place, notice in enumerate(asked, 1)
        if _is_told(notice["on"], status, reason)
    ]


def notification_id(run_id: UUID, place: int, finished_at: datetime) -> UUID:
    milliseconds = (finished_at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    digest = bytearray(
        milliseconds.to_bytes(6, "big") + hashlib.md5(f"{run_id}/{place}".encode(), usedforsecurity=False).digest()[6:]
    )
    digest[6] = digest[6] & 0x0F | 0x70
    digest[8] = digest[8] & 0x3F | 0x80
    return UUID(bytes=bytes(digest))


def _is_told(on: Iterable[str], status: str, reason: str | None) -> bool:
    return any(word in (status, reason) for word in on)
