"""Checks the permission that each route declares. A route without a declaration can't be built.

    @requires(Permission.OPERATE)
    async def pause_queue(self, name: str, caller: Calling) -> Response: ...

`authentication` has identified the caller before routing. The permission is checked before the body is read. Changes
and refusals are recorded in the audit record before the answer is sent.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.document import operation_id
from foliot.api.problems import problem_of
from foliot.api.security.audit_log import IS_NOTED, note
from foliot.errors import FoliotError, Forbidden, Unauthenticated
from foliot.model.namespace import Namespace
from foliot.model.permissions import Caller, Permission

F = TypeVar("F", bound=Callable[..., Any])
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
MARK = "__foliot_requires__"
CALLER = "foliot.caller"
REFUSAL = "foliot.refusal"
READING = frozenset({Permission.NONE, Permission.VIEW})


@dataclass(frozen=True, slots=True)
class Requirement:
    permission: Permission
    everywhere: bool = False
    """Only with a token for all namespaces: what it shows or changes belongs to none."""
    is_reading: bool = False
    """Nothing is changed by it, so that it is not recorded."""


def requires(permission: Permission, *, everywhere: bool = False, reading: bool | None = None) -> Callable[[F], F]:
    """`reading`: whether it changes nothing; by default that depends on the permission."""
    requirement = Requirement(permission, everywhere, permission in READING if reading is None else reading)

    def mark(handler: F) -> F:
        setattr(handler, MARK, requirement)
        return handler

    return mark


# Async, though they wait for nothing: the framework would call plain functions in a thread.
async def caller_of(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller


async def _namespace_of(request: Request) -> Namespace:
    return namespace_of_caller(request)


def namespace_of_caller(request: Request) -> Namespace:
    """What `Within` gives, for handlers that take nothing but the request."""
    caller: Caller = request.scope[CALLER]
    return caller.namespace


Calling = Annotated[Caller, Depends(caller_of)]
Within = Annotated[Namespace, Depends(_namespace_of)]
"""The namespace that a request is about."""


class PermissionRoute(APIRoute):
    """The only kind of route there is here."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        requirement = getattr(endpoint, MARK, None)
        if requirement is None:
            raise TypeError(f"the route {path} does not say what it requires of its caller: see @requires")
        self.requirement: Requirement = requirement
        super().__init__(path, endpoint, **settings | {"generate_unique_id_function": operation_id})

    @property
    def is_plain(self) -> bool:
        """Whether its handler takes the request and nothing else, so that the framework has nothing to find out for
        it."""
        return list(inspect.signature(self.endpoint).parameters) == ["request"]

    def get_route_handler(self) -> Handler:
        handle = self.endpoint if self.is_plain else super().get_route_handler()
        requirement, action = self.requirement, self.name

        async def checked(request: Request) -> Response:
            try:
                check(request, requirement)
            except FoliotError as error:
                answer = problem_of(error, request)
                await note(request, action, answer.status_code, code=error.code)
                return answer
            if requirement.is_reading:
                return await handle(request)
            try:
                answer = await handle(request)
            except FoliotError as error:
                answer = problem_of(error, request)
                await note(request, action, answer.status_code, code=error.code)
                return answer
            except Exception:
                # What it has done before it broke down, nobody knows.
                await note(request, action, 500, code="internal")
                raise
            if IS_NOTED not in request.scope:
                await note(
                    request,
                    action,
                    answer.status_code,
                    target=answer.headers.get("location", "").rpartition("/")[2] or None,
                )
            return answer

        return checked


def check(request: Request, requirement: Requirement) -> None:
    """Raises `Unauthenticated`, `Forbidden`, or the error that authentication left in the scope."""
    if requirement.permission is Permission.NONE:
        return
    if (refusal := request.scope.get(REFUSAL)) is not None:
        raise refusal
    caller: Caller | None = request.scope.get(CALLER)
    if caller is None:
        raise Unauthenticated("say who you are: send the header Authorization: Bearer <token>")
    if not caller.may(requirement.permission):
        raise Forbidden(f"the role {caller.role} may not do this; it needs the permission to {requirement.permission}")
    if requirement.everywhere and not caller.is_everywhere:
        raise Forbidden("this is about the whole installation: it needs a token for all namespaces")
