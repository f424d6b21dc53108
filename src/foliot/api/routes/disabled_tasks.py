"""`/v1/disabled-tasks` and `/v1/tasks/{name}`: disables and enables built-in tasks in a namespace, or in all."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.requests.idempotency import answered
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.config import BUILT_IN_TASKS, did_you_mean
from foliot.errors import Forbidden, NotFound
from foliot.model.namespace import Namespace
from foliot.model.roles import EVERYWHERE, Caller, Permission
from foliot.store.store import Store
from foliot.submission.known_tasks import KnownTasks


class DisableRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=1000, description="Why it is disabled.")] | None = None
    everywhere: Annotated[
        bool, Meta(description="In all namespaces, future ones included. Needs a token for all namespaces.")
    ] = False


class EnableRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    everywhere: Annotated[bool, Meta(description="Enables the task in all namespaces, and not in this one only.")] = (
        False
    )


class DisabledTaskShown(msgspec.Struct, frozen=True):
    task: str
    everywhere: bool
    """In all namespaces."""
    disabled_at: datetime
    disabled_by: str
    reason: str | None
    imposed: bool
    """Disabled with a token for all namespaces; only such a token can enable it."""


class DisabledTaskList(msgspec.Struct, frozen=True):
    items: list[DisabledTaskShown]


disable_decoder = msgspec.json.Decoder(DisableRequest)
enable_decoder = msgspec.json.Decoder(EnableRequest)
DISABLES = {"here": {"reason": "this team runs no commands"}, "in all namespaces": {"everywhere": True}}
ENABLES = {"here": {}, "in all namespaces": {"everywhere": True}}


def disabled_tasks_router(*, store: Store, known_tasks: KnownTasks, body_max_bytes: int) -> APIRouter:
    router = APIRouter(tags=["access"], route_class=PermissionRoute)
    disables = described(
        200, DisabledTaskList, body=DisableRequest, examples=DISABLES, problems=(404, 503), is_body_optional=True
    )
    enables = described(
        200, DisabledTaskList, body=EnableRequest, examples=ENABLES, problems=(404, 503), is_body_optional=True
    )

    async def listed(namespace: Namespace) -> Response:
        found = await store.disabled_tasks.list_disabled_tasks(namespace.name)
        items = [
            DisabledTaskShown(
                one.task, one.namespace == EVERYWHERE, one.disabled_at, one.disabled_by, one.reason, one.is_imposed
            )
            for one in found
        ]
        return answered(DisabledTaskList(items))

    @router.get("/v1/disabled-tasks", openapi_extra=described(200, DisabledTaskList))
    @requires(Permission.VIEW)
    async def list_disabled_tasks(namespace: Within) -> Response:
        """Lists the tasks that are disabled in this namespace."""
        return await listed(namespace)

    @router.post("/v1/tasks/{name}/disable", openapi_extra=disables)
    @requires(Permission.ADMINISTER)
    async def disable_task(name: str, request: Request, caller: Calling) -> Response:
        """Disables a built-in task. New jobs with it are refused; stored ones fail when a worker claims them.

        Running attempts continue.
        """
        asked = await decoded(await read(request, body_max_bytes) or b"{}", disable_decoder)
        check_name(name)
        scope = scope_of(caller, is_everywhere=asked.everywhere)
        await store.disabled_tasks.put_disabled_task(
            scope, name, caller.name, asked.reason, is_imposed=caller.is_everywhere
        )
        known_tasks.forget()
        return await listed(caller.namespace)

    @router.post("/v1/tasks/{name}/enable", openapi_extra=enables)
    @requires(Permission.ADMINISTER)
    async def enable_task(name: str, request: Request, caller: Calling) -> Response:
        """Enables a task again. Enabling an enabled task changes nothing."""
        asked = await decoded(await read(request, body_max_bytes) or b"{}", enable_decoder)
        check_name(name)
        scope = scope_of(caller, is_everywhere=asked.everywhere)
        await store.disabled_tasks.delete_disabled_task(scope, name, may_lift=caller.is_everywhere)
        known_tasks.forget()
        left = await store.disabled_tasks.list_disabled_tasks(caller.namespace.name)
        if any((one.namespace, one.task) == (scope, name) for one in left):
            raise Forbidden(
                f"the task {name!r} was disabled with a token for all namespaces: only such a token can enable it"
            )
        return await listed(caller.namespace)

    return router


def check_name(name: str) -> None:
    if name not in BUILT_IN_TASKS:
        known = ", ".join(sorted(BUILT_IN_TASKS))
        raise NotFound(f"there is no built-in task {name!r}{did_you_mean(name, BUILT_IN_TASKS)}; they are {known}")


def scope_of(caller: Caller, *, is_everywhere: bool) -> str:
    if is_everywhere and not caller.is_everywhere:
        raise Forbidden("everywhere: needs a token for all namespaces")
    return EVERYWHERE if is_everywhere else caller.namespace.name
