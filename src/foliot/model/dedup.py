"""Keys that keep a job from being there twice: of a request that is repeated, and of runs of which only one may be
live."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from foliot.errors import Invalid
from foliot.model.gates import KEY

OnConflict = Literal["return_existing", "reject", "replace"]
KEY_LENGTH = 255
# What a header can carry without being mangled on the way.
IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")


IdempotencyKey = Annotated[
    str,
    Meta(
        description="The same answer for a repeated request; or the header Idempotency-Key.",
        extra_json_schema={"minLength": 1, "maxLength": KEY_LENGTH, "pattern": f"^{IDEMPOTENCY_KEY.pattern}$"},
    ),
]


class Unique(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most one run with this key waits or runs at a time. `on_conflict` says what becomes of another one."""

    key: Annotated[str, Meta(min_length=1, max_length=KEY_LENGTH, pattern=KEY)]
    on_conflict: OnConflict = "return_existing"


def check_idempotency_key(key: str) -> str:
    if not IDEMPOTENCY_KEY.fullmatch(key):
        raise Invalid(
            f"idempotency_key: 1 to {KEY_LENGTH} printable ASCII characters, with no blank at either end",
            field="idempotency_key",
        )
    return key


def fingerprint_of(path: str, body: bytes) -> str:
    """Equal for requests that ask for the same: the order of fields does not matter, nor does where the key itself
    stood."""
    try:
        request = msgspec.json.decode(body)
        if isinstance(request, dict):
            request.pop("idempotency_key", None)
        asked = msgspec.json.encode([path, request], order="sorted")
    except RecursionError:
        # Too deep to be looked into; then the same is what is the same to the letter.
        asked = path.encode() + body
    return hashlib.sha256(asked).hexdigest()
