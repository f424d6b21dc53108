"""Pauses of queues, tasks and everything, limits of queues, and circuit breakers of tasks."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from fastapi import APIRouter
from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import PauseRequest
from foliot.api.requests.bodies import decoded, read, read_json
from foliot.api.requests.etags import Version, if_match_of, tagged
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.errors import Conflict, Invalid, PreconditionFailed
from foliot.model.job_request import EARLIEST, LATEST
from foliot.model.namespace import Namespace, bare
from foliot.model.permissions import Caller, Permission
from foliot.model.run_request import Name
from foliot.store.gates import CircuitState, Pause, PauseKind, QueueLimits
from foliot.store.hints import ALL_QUEUES_TOPIC
from foliot.store.store import Store

Bound = Annotated[int, Meta(ge=1, le=1_000_000_000)]


class QueueChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Null removes a limit."""

    max_running: Bound | UnsetType | None = UNSET
    max_depth: Bound | UnsetType | None = UNSET


class QueueLimitsShown(msgspec.Struct, frozen=True):
    name: str
    max_running: int | None
    max_depth: int | None
    updated_at: datetime | None
    """Null if no limit was ever set."""


class PauseList(msgspec.Struct, frozen=True):
    items: list[Pause]


class CircuitList(msgspec.Struct, frozen=True):
    items: list[CircuitState]


pause_decoder = msgspec.json.Decoder(PauseRequest)
change_decoder = msgspec.json.Decoder(QueueChange)
CHANGE_ATTEMPTS = 10
PAUSES = {"for a while": {"reason": "the mail server is down", "until": "2099-01-01T00:00:00Z"}, "until resumed": {}}
CHANGES = {
    "at most ten at once": {"max_running": 10},
    "any number at once": {"max_running": None, "max_depth": 100_000},
}


class GateRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["limits and pauses"], route_class=PermissionRoute)
        add = self.router.add_api_route
        pauses = described(
            200, PauseList, body=PauseRequest, examples=PAUSES, problems=(422, 503), is_body_optional=True
        )
        resumes = described(200, PauseList, problems=(422, 503))
        changes = described(
            200, QueueLimitsShown, body=QueueChange, examples=CHANGES, problems=(409, 422, 503), matched=True
        )
        shows = described(200, QueueLimitsShown, problems=(422, 503), tagged=True)
        add("/v1/pauses", self.list_pauses, methods=["GET"], openapi_extra=described(200, PauseList))
        add("/v1/circuits", self.list_circuits, methods=["GET"], openapi_extra=described(200, CircuitList))
        add("/v1/pause", self.pause_everything, methods=["POST"], openapi_extra=pauses)
        add("/v1/resume", self.resume_everything, methods=["POST"], openapi_extra=resumes)
        add("/v1/queues/{name}/pause", self.pause_queue, methods=["POST"], openapi_extra=pauses)
        add("/v1/queues/{name}/resume", self.resume_queue, methods=["POST"], openapi_extra=resumes)
        add("/v1/queues/{name}", self.get_queue, methods=["GET"], openapi_extra=shows)
        add("/v1/queues/{name}", self.change_queue, methods=["PATCH"], openapi_extra=changes)
        add("/v1/tasks/{name}/pause", self.pause_task, methods=["POST"], openapi_extra=pauses)
        add("/v1/tasks/{name}/resume", self.resume_task, methods=["POST"], openapi_extra=resumes)

    @requires(Permission.VIEW)
    async def list_pauses(self, namespace: Within) -> Response:
        """Lists the current pauses, with reason and end. Paused recurring jobs are not listed here."""
        return await self._pauses(namespace)

    @requires(Permission.VIEW)
    async def list_circuits(self, namespace: Within) -> Response:
        """Lists the tasks whose last run failed: how often in a row, and until when the circuit is open."""
        found = [circuit for circuit in await self._store.gates.list_circuits() if namespace.owns(circuit.task)]
        return _answer(CircuitList([replace(circuit, task=bare(circuit.task)) for circuit in found]))

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

    @requires(Permission.VIEW)
    async def get_queue(self, name: str, request: Request, namespace: Within) -> Response:
        """Shows the limits of a queue; null means none. A queue exists once a job names it, without limits until
        they are set."""
        return self._limits(name, await self._store.gates.get_queue(namespace.qualified(_checked(name))), request)

    @requires(Permission.OPERATE)
    async def change_queue(self, name: str, request: Request, namespace: Within) -> Response:
        """Limits how many runs of a queue run at once, and how many wait before new jobs are refused with 429."""
        asked = await read_json(request, change_decoder, max_bytes=self._body_max_bytes)
        if_match, stored = if_match_of(request), namespace.qualified(_checked(name))
        for _ in range(CHANGE_ATTEMPTS):
            limits = await self._store.gates.get_queue(stored)
            if if_match is not None:
                if_match.check(f"limits of the queue {name!r}", version_of(limits))
            changed = QueueLimits(
                max_running=limits.max_running if asked.max_running is UNSET else asked.max_running,
                max_depth=limits.max_depth if asked.max_depth is UNSET else asked.max_depth,
            )
            # Only if the limits are still as read, so that a simultaneous change is not undone.
            if await self._store.gates.put_queue(stored, changed, limits):
                self._store.hints.send([ALL_QUEUES_TOPIC])
                return self._limits(name, await self._store.gates.get_queue(stored), request)
        why = f"the limits of the queue {name!r} keep changing at the same time; GET them again and retry"
        raise PreconditionFailed(why) if if_match is not None else Conflict(why)

    def _limits(self, name: str, limits: QueueLimits, request: Request) -> Response:
        shown = QueueLimitsShown(name, limits.max_running, limits.max_depth, limits.updated_at)
        return tagged(request, shown, version_of(limits))

    async def _pause(self, kind: PauseKind, name: str, request: Request, caller: Caller) -> Response:
        asked = await decoded(await read(request, self._body_max_bytes) or b"{}", pause_decoder)
        if asked.until is not None and not await self._store.jobs.database_now() < asked.until < LATEST:
            raise Invalid(f"until: must be in the future and before the year {LATEST.year}", field="until")
        stored = caller.namespace.qualified(_checked(name)) if name else ""
        await self._store.gates.put_pause(kind, stored, asked.until, asked.reason, caller.name)
        return await self._pauses(caller.namespace)

    async def _resume(self, kind: PauseKind, name: str, namespace: Namespace) -> Response:
        stored = namespace.qualified(_checked(name)) if name else ""
        await self._store.gates.delete_pause(kind, stored)
        self._store.hints.send([stored if kind == "queue" else ALL_QUEUES_TOPIC])
        return await self._pauses(namespace)

    async def _pauses(self, namespace: Namespace) -> Response:
        """The pauses of the namespace, and of everything."""
        found = [
            pause for pause in await self._store.gates.list_pauses() if not pause.name or namespace.owns(pause.name)
        ]
        return _answer(PauseList([replace(pause, name=bare(pause.name)) for pause in found]))


def version_of(limits: QueueLimits) -> Version:
    """The time of the last change, which grows with each change."""
    number = 0 if limits.updated_at is None else (limits.updated_at - EARLIEST) // timedelta(microseconds=1)
    return Version(number, EARLIEST)


def _checked(name: str) -> str:
    try:
        return msgspec.convert(name, Name)
    except msgspec.ValidationError:
        raise Invalid("name: letters, digits and _ . : - only, 200 at most", field="name") from None


def _answer(body: object) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
