"""Idempotency keys: a repeated request gets the answer of the first one and creates nothing.

The query `take_key` (store/sql/idempotency.sql) reserves the key in the transaction that stores the job, `keep_answer`
stores the answer with it, and `find_answer` returns it to a repeated request.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated

import msgspec
from msgspec import Meta

from foliot.errors import Invalid

KEY_LENGTH = 255
# Characters that pass through an HTTP header unchanged.
IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")

IdempotencyKey = Annotated[
    str,
    Meta(
        description="A repeated request with this key gets the first answer. The header Idempotency-Key does the same.",
        extra_json_schema={"minLength": 1, "maxLength": KEY_LENGTH, "pattern": f"^{IDEMPOTENCY_KEY.pattern}$"},
    ),
]


def check_idempotency_key(key: str) -> str:
    if not IDEMPOTENCY_KEY.fullmatch(key):
        raise Invalid(
            f"idempotency_key: must be 1 to {KEY_LENGTH} printable ASCII characters with no space at either end",
            field="idempotency_key",
        )
    return key


def request_fingerprint(path: str, body: bytes) -> str:
    """Equal for equal requests: the order of fields does not matter, nor whether the key is in the body or a header."""
    try:
        request = msgspec.json.decode(body)
        if isinstance(request, dict):
            request.pop("idempotency_key", None)
        canonical = msgspec.json.encode([path, request], order="sorted")
    except RecursionError:
        # Nested too deeply to decode: compare the bytes as they are.
        canonical = path.encode() + body
    return hashlib.sha256(canonical).hexdigest()
