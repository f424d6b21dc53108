"""Access tokens: their form, their life, and the hash that is stored.

The text of a token is shown once, when it is created. The database stores a hash, which is found by the public part of
the text.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass
from datetime import datetime

from foliot.model.roles import Role
from foliot.triggers.durations import parse_duration

PREFIX = "foliot"
DEFAULT_LIFE = "90d"
NEVER = "never"
TEXT = re.compile(r"foliot_([0-9a-f]{16})_([0-9a-f]{64})_([0-9a-f]{8})")
TOKEN_FORM = rf"^{TEXT.pattern}$(?!\n)"


@dataclass(frozen=True, slots=True)
class Token:
    """As it is stored."""

    id: str
    name: str
    role: Role
    namespace: str
    """Or `*`."""
    created_at: datetime
    created_by: str
    created_by_id: str | None
    """The id of the token that it was made with."""
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None
    is_valid: bool
    """On the database's clock, when it was read."""


def life_of(text: str) -> float | None:
    """Seconds that a token lives; None for ever. Raises `Invalid`."""
    return None if text == NEVER else float(parse_duration(text, field="expires_in"))


def new_token_text() -> tuple[str, str, bytes]:
    """The text that its holder keeps, the id that finds it, and the hash that is stored. Its end tells a typing error
    from a guess."""
    token_id, secret = secrets.token_hex(8), secrets.token_hex(32)
    unsigned = f"{PREFIX}_{token_id}_{secret}"
    text = f"{unsigned}_{_checksum(unsigned)}"
    return text, token_id, hash_of(text)


def token_id_of(text: str) -> str | None:
    """Returns None for a text that cannot be a token of Foliot."""
    match = TEXT.fullmatch(text)
    if match is None or _checksum(text.rpartition("_")[0]) != match[3]:
        return None
    return match[1]


def is_hash_of(stored: bytes, text: str) -> bool:
    return hmac.compare_digest(stored, hash_of(text))


def hash_of(text: str) -> bytes:
    # Not a slow hash: what is hashed is random through and through, and can't be guessed however fast one tries.
    return hashlib.sha256(text.encode()).digest()


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"
