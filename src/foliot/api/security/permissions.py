"""Checks the permission that each route declares. A route without a declaration can't be built.

    @requires(Permission.OPERATE)
    async def pause_queue(self, name: str, caller: Calling) -> Response: ...

`authentication` has identified the caller before routing. The permission is checked before the body is read. Changes
and refusals are recorded in the audit record before the answer is sent.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.document import operation_id
from foliot.api.problems import problem_of
from foliot.api.requests.query import refuse_unknown
from foliot.api.security.audit_log import IS_NOTED, note
from foliot.errors import FoliotError, Forbidden, Unauthenticated
from foliot.model.namespace import Namespace
from foliot.model.roles import Caller, Permission

F = TypeVar("F", bound=Callable[..., Any])
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
STRICT = "/v1/"
"""Routes below it refuse query parameters that they do not have."""
MARK = "__foliot_requires__"
CALLER = "foliot.caller"
REFUSAL = "foliot.refusal"
UNRECORDED = frozenset({Permission.NONE, Permission.VIEW, Permission.WORK})
"""Reading; and the attempts of workers, which are recorded with their runs."""


@dataclass(frozen=True, slots=True)
class Requirement:
    permission: Permission
    everywhere: bool = False
    """Only with a token for all namespaces: what it shows or changes belongs to none."""
    is_reading: bool = False
    """Nothing is changed by it, or nothing but runs by their worker, so that it is not recorded."""


def requires(permission: Permission, *, everywhere: bool = False, reading: bool | None = None) -> Callable[[F], F]:
    """`reading`: whether the route changes nothing. By default, the permission decides."""
    requirement = Requirement(permission, everywhere, permission in UNRECORDED if reading is None else reading)

    def mark(handler: F) -> F:
        setattr(handler, MARK, requirement)
        return handler

    return mark


# Async although they never wait, because the framework would call plain functions in a thread.
async def caller_of(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller


async def _namespace_of(request: Request) -> Namespace:
    return namespace_of_caller(request)


def namespace_of_caller(request: Request) -> Namespace:
    """The value of `Within`, for handlers that take only the request."""
    caller: Caller = request.scope[CALLER]
    return caller.namespace


def actor_of(request: Request) -> str:
    """The name under which the caller's changes are recorded."""
    caller: Caller = request.scope[CALLER]
    return caller.name


Calling = Annotated[Caller, Depends(caller_of)]
Within = Annotated[Namespace, Depends(_namespace_of)]
"""The namespace that a request is about."""


class PermissionRoute(APIRoute):
    """The only class of routes in this API."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        requirement = getattr(endpoint, MARK, None)
        if requirement is None:
            raise TypeError(f"the route {path} does not say what it requires of its caller: see @requires")
        self.requirement: Requirement = requirement
        super().__init__(path, endpoint, **settings | {"generate_unique_id_function": operation_id})

    @property
    def is_plain(self) -> bool:
        """Whether the handler takes only the request, so that the framework has no parameters to resolve."""
        return list(inspect.signature(self.endpoint).parameters) == ["request"]

    def get_route_handler(self) -> Handler:
        handle = self.endpoint if self.is_plain else super().get_route_handler()
        requirement, action, parameters = self.requirement, self.name, frozenset(_query_parameters(self.dependant))
        # Load balancers add parameters to health checks, and the lab defines its own API.
        is_strict = self.path.startswith(STRICT)

        async def checked(request: Request) -> Response:
            try:
                check(request, requirement)
                if is_strict and (query := request.scope["query_string"]):
                    refuse_unknown(query, parameters)
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
                # Nobody knows which changes it made before the error.
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


def _query_parameters(handler: Dependant) -> Iterator[str]:
    """The names of the query parameters that a handler or one of its dependencies takes."""
    for field in handler.query_params:
        yield field.alias
    for dependency in handler.dependencies:
        yield from _query_parameters(dependency)


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
