"""ETags, and conditional requests: they change a resource only if it is still as the client saw it.

    ETag: "<version>.<when it was created>.<checksum of what is shown>"

If-Match compares the version and the creation time. The version counts decisions of users, not changes that happen by
themselves; otherwise a job that fires every second could never be changed. The creation time distinguishes a job from a
later one with the same name. If-None-Match compares the whole tag. `check` compares with what was read; the statement
that writes checks the version again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zlib import crc32

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from foliot.errors import Invalid, PreconditionFailed

LENGTH_MAX = 4000
# One of our tags, or only its version, which every answer shows as well. Other tags are well-formed but never match.
OURS = re.compile(r'"(?P<version>[0-9]{1,18})(?:\.(?P<created>[0-9a-f]{1,16})\.[0-9a-f]{8})?"')
TAG = re.compile(r'\s*((?:W/)?"[\x21\x23-\x7e\x80-\xff]*")\s*')


# The form of a header with tags, for the OpenAPI document. A comma ends a tag.
TAGS_FORM = r'^\*$|^(?:W/)?"[!#-+\--~]*"(?: ?, ?(?:W/)?"[!#-+\--~]*"){0,20}$'


@dataclass(frozen=True, slots=True)
class Version:
    """The version of a resource as it was read."""

    number: int
    created_at: datetime

    @property
    def created(self) -> str:
        return f"{(self.created_at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1):x}"


@dataclass(frozen=True, slots=True)
class IfMatch:
    """The versions that the request is meant for. `tags` is empty for `*`, which matches any version."""

    tags: tuple[str, ...] = ()

    def check(self, what: str, current: Version | None) -> None:
        """Raises `PreconditionFailed` if the resource does not exist or has another version."""
        if current is None:
            raise PreconditionFailed(
                f"there is no {what}, so nothing that If-Match could name; leave the header out to make one"
            )
        if self.tags and not any(_is_of(tag, current) for tag in self.tags):
            raise PreconditionFailed(
                f"the {what} is at version {current.number}, which If-Match does not name: somebody changed it; "
                "GET it again, and repeat the request with its new ETag if it still makes sense"
            )


def if_match_of(request: Request) -> IfMatch | None:
    """None if the request has no If-Match."""
    tags = _tags_of(request, "If-Match")
    return None if tags is None else IfMatch(tags)


def is_create_only(request: Request) -> bool:
    """Whether If-None-Match is `*`, its only form that makes sense for a change. Raises `Invalid` for other forms."""
    tags = _tags_of(request, "If-None-Match")
    if tags:
        raise Invalid("If-None-Match: only * makes sense here; give the ETag as If-Match", field="If-None-Match")
    return tags is not None


def tagged(request: Request, body: object, version: Version, *, status: int = 200) -> Response:
    """The response with its ETag; 304 if a GET already has this ETag."""
    encoded = msgspec.json.encode(body)
    tag = f'"{version.number}.{version.created}.{crc32(encoded):08x}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.method in ("GET", "HEAD") and _is_known(request.headers.get("If-None-Match"), tag):
        return Response(status_code=304, headers=headers)
    return Response(encoded, status, headers, media_type="application/json")


def _is_known(known: str | None, tag: str) -> bool:
    """Whether the client already has the resource with this tag. Malformed tags never match."""
    return known is not None and (
        known.strip() == "*" or tag in [name.strip().removeprefix("W/") for name in known.split(",")]
    )


def _tags_of(request: Request, header: str) -> tuple[str, ...] | None:
    """None if the request has no such header; empty for `*`."""
    value = ",".join(request.headers.getlist(header)) if header in request.headers else None
    if value is None:
        return None
    if value.strip() == "*":
        return ()
    found = [TAG.fullmatch(part) for part in value.split(",")] if len(value) <= LENGTH_MAX else [None]
    if not all(found):
        raise Invalid(
            f'{header}: give an ETag as it was shown, in quotes, like "3"; several with commas between; or *',
            field=header,
        )
    return tuple(tag[1] for tag in found if tag)


def _is_of(tag: str, current: Version) -> bool:
    """Whether a tag names this version. Weak tags never do."""
    ours = OURS.fullmatch(tag)
    return ours is not None and int(ours["version"]) == current.number and ours["created"] in (None, current.created)
