"""Roles: the permissions of each role, and the namespaces in which a caller has them.

A token has one role, in one namespace or in all of them (`*`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from foliot.errors import Forbidden
from foliot.model.namespace import DEFAULT, Namespace

EVERYWHERE = "*"


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
