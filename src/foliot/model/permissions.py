"""Tokens, roles, and the permissions of each role.

A token is scoped to one namespace, or to all of them (`*`). Its text is shown once, when it is created. The database
stores a hash, which is found by the public part of the text.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from foliot.errors import Forbidden
from foliot.model.namespace import DEFAULT, Namespace
from foliot.triggers.durations import parse_duration

EVERYWHERE = "*"
PREFIX = "foliot"
DEFAULT_LIFE = "90d"
NEVER = "never"
TEXT = re.compile(r"foliot_([0-9a-f]{16})_([0-9a-f]{64})_([0-9a-f]{8})")
TOKEN_FORM = rf"^{TEXT.pattern}$(?!\n)"


class Role(StrEnum):
    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"


class Permission(StrEnum):
    """A permission that a route requires."""

    NONE = "none"
    """Anybody may, without saying who they are."""
    VIEW = "view"
    SUBMIT = "submit"
    DRAIN = "drain"
    """Take a worker out of service."""
    WORK = "work"
    """Claim and run jobs."""
    OPERATE = "operate"
    ADMINISTER = "administer"


ALLOWED: dict[Role, frozenset[Permission]] = {
    Role.VIEWER: frozenset({Permission.VIEW}),
    Role.SUBMITTER: frozenset({Permission.VIEW, Permission.SUBMIT}),
    # For workers without database access, and for programs on a worker's machine: jobs that submit others, and scripts
    # that take the machine out of service.
    Role.WORKER: frozenset({Permission.VIEW, Permission.SUBMIT, Permission.DRAIN, Permission.WORK}),
    Role.OPERATOR: frozenset({Permission.VIEW, Permission.SUBMIT, Permission.DRAIN, Permission.OPERATE}),
    Role.ADMIN: frozenset(Permission),
}


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


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request, and its namespace."""

    name: str
    role: Role
    scope: str
    """The namespace that the token is for, or `*`."""
    namespace: Namespace
    """The one that this request is about."""
    token_id: str | None = None

    @property
    def is_everywhere(self) -> bool:
        return self.scope == EVERYWHERE

    def may(self, permission: Permission) -> bool:
        return permission in ALLOWED[self.role]


LOCAL = Caller("local", Role.ADMIN, EVERYWHERE, Namespace())
"""Every client on the loopback interface in local mode."""


def home_of(scope: str) -> Namespace:
    """The namespace of a request that names none."""
    return Namespace(DEFAULT if scope == EVERYWHERE else scope)


def within(caller: Caller, asked: str) -> Namespace:
    """The namespace of a request that names one. Raises `Forbidden` for one that the caller's token is not for."""
    if not caller.is_everywhere and asked != caller.scope:
        raise Forbidden(f"this token is for the namespace {caller.scope!r}")
    return Namespace(asked)


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
    """None for what can't be a token of ours."""
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
