"""Sessions of browsers: a random id in a cookie stands for the token that the user typed once.

A session ends after twelve hours without a request, seven days after the sign-in, and with its token.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import timedelta

COOKIE = "__Host-foliot"
LIFE = timedelta(days=7)
IDLE = timedelta(hours=12)
ID = re.compile(r"[A-Za-z0-9_-]{43}")


def new_session_id() -> str:
    return secrets.token_urlsafe(32)


def is_session_id(text: str) -> bool:
    return ID.fullmatch(text) is not None


def session_hash(session_id: str) -> bytes:
    # A fast hash is enough: nobody can guess 256 random bits.
    return hashlib.sha256(session_id.encode()).digest()
