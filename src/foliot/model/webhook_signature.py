"""Signatures of webhooks, as the Standard Webhooks have them. Pure.

The header `webhook-signature` has `v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; there may be several,
separated by spaces, while a secret is being replaced. An old timestamp is refused, so a message that somebody has
recorded is worth nothing later, and before that its id is known.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from hashlib import sha256

TOLERANCE_SECONDS = 300
ID_MAX = 255
SIGNATURES_MAX = 10
PREFIX = "whsec_"


def is_signed(
    secret: str, *, message_id: str, timestamp: str, signatures: str, body: bytes, now_seconds: float
) -> bool:
    if not message_id or len(message_id) > ID_MAX or not message_id.isprintable():
        return False
    if not timestamp.isdecimal() or len(timestamp) > 12 or abs(now_seconds - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    expected = signature_of(secret, message_id=message_id, timestamp=timestamp, body=body).encode()
    given = signatures.split(" ")[:SIGNATURES_MAX]
    return any(hmac.compare_digest(one.encode("utf-8", "replace"), expected) for one in given)


def signature_of(secret: str, *, message_id: str, timestamp: str, body: bytes) -> str:
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(_key_of(secret), signed, sha256).digest()).decode()


def _key_of(secret: str) -> bytes:
    if secret.startswith(PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except (binascii.Error, ValueError):
            pass
    return secret.encode()
