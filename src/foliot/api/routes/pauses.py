"""Pauses of a queue, of a task, or of everything; the list has the paused jobs as well."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import PauseRequest
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.requests.names import stored_name
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.errors import Invalid
from foliot.model.job_request import LATEST
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Caller, Permission
from foliot.store.hints import ALL_QUEUES_TOPIC
from foliot.store.pauses import Pause, PauseKind
from foliot.store.store import Store


class PauseList(msgspec.Struct, frozen=True, omit_defaults=True):
    items: list[Pause]
    more: bool = False
    """There are more paused jobs than were looked at."""


pause_decoder = msgspec.json.Decoder(PauseRequest)
PAUSES = {"for a while": {"reason": "the mail server is down", "until": "2099-01-01T00:00:00Z"}, "until resumed": {}}


class PauseRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["limits and pauses"], route_class=PermissionRoute)
        add = self.router.add_api_route
        pauses = described(
            200, PauseList, body=PauseRequest, examples=PAUSES, problems=(422, 503), is_body_optional=True
        )
        resumes = described(200, PauseList, problems=(422, 503))
        add("/v1/pauses", self.list_pauses, methods=["GET"], openapi_extra=described(200, PauseList))
        add("/v1/pause", self.pause_everything, methods=["POST"], openapi_extra=pauses)
        add("/v1/resume", self.resume_everything, methods=["POST"], openapi_extra=resumes)
        add("/v1/queues/{name}/pause", self.pause_queue, methods=["POST"], openapi_extra=pauses)
        add("/v1/queues/{name}/resume", self.resume_queue, methods=["POST"], openapi_extra=resumes)
        add("/v1/tasks/{name}/pause", self.pause_task, methods=["POST"], openapi_extra=pauses)
        add("/v1/tasks/{name}/resume", self.resume_task, methods=["POST"], openapi_extra=resumes)

    @requires(Permission.VIEW)
    async def list_pauses(self, namespace: Within) -> Response:
        """Lists the pauses of everything, of queues, tasks and recurring jobs: who paused them, why, and until when."""
        return await self._pauses(namespace)

    @requires(Permission.OPERATE, everywhere=True)
    async def pause_everything(self, request: Request, caller: Calling) -> Response:
        """Pauses everything: no run starts. Running attempts continue."""
        return await self._pause("everything", "", request, caller)

    @requires(Permission.OPERATE, everywhere=True)
    async def resume_everything(self, namespace: Within) -> Response:
        """Ends the pause of everything. Pauses of queues and tasks remain."""
        return await self._resume("everything", "", namespace)

    @requires(Permission.OPERATE)
    async def pause_queue(self, name: str, request: Request, caller: Calling) -> Response:
        """Pauses a queue: none of its runs start. Running attempts continue, and new jobs are accepted."""
        return await self._pause("queue", name, request, caller)

    @requires(Permission.OPERATE)
    async def resume_queue(self, name: str, namespace: Within) -> Response:
        """Ends the pause of a queue. Resuming a queue that is not paused changes nothing."""
        return await self._resume("queue", name, namespace)

    @requires(Permission.OPERATE)
    async def pause_task(self, name: str, request: Request, caller: Calling) -> Response:
        """Pauses a task: none of its runs start, in any queue."""
        return await self._pause("task", name, request, caller)

    @requires(Permission.OPERATE)
    async def resume_task(self, name: str, namespace: Within) -> Response:
        """Ends the pause of a task. Resuming a task that is not paused changes nothing."""
        return await self._resume("task", name, namespace)

    async def _pause(self, kind: PauseKind, name: str, request: Request, caller: Caller) -> Response:
        asked = await decoded(await read(request, self._body_max_bytes) or b"{}", pause_decoder)
        if asked.until is not None and not await self._store.jobs.database_now() < asked.until < LATEST:
            raise Invalid(f"until: must be in the future and before the year {LATEST.year}", field="until")
        stored = stored_name(caller.namespace, name) if name else ""
        await self._store.pauses.put_pause(kind, stored, asked.until, asked.reason, caller.name)
        return await self._pauses(caller.namespace)

    async def _resume(self, kind: PauseKind, name: str, namespace: Namespace) -> Response:
        stored = stored_name(namespace, name) if name else ""
        await self._store.pauses.delete_pause(kind, stored)
        self._store.hints.send([stored if kind == "queue" else ALL_QUEUES_TOPIC])
        return await self._pauses(namespace)

    async def _pauses(self, namespace: Namespace) -> Response:
        """The pauses of the namespace, its paused jobs, and the pause of everything."""
        found = [
            pause for pause in await self._store.pauses.list_pauses() if not pause.name or namespace.owns(pause.name)
        ]
        jobs, are_all = await self._store.pauses.list_job_pauses(namespace)
        return _answer(PauseList([replace(pause, name=bare(pause.name)) for pause in found + jobs], more=not are_all))


def _answer(body: object) -> Response:
    return json_response(body)
