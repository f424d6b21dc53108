"""Pauses of queues, tasks and everything; limits of queues; circuits of tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import msgspec
from fastapi import APIRouter
from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.access import Calling, GuardedRoute, Within, requires
from foliot.api.bodies import decode, read, read_json
from foliot.api.openapi import described
from foliot.api.schemas import LATEST, PauseRequest
from foliot.errors import Invalid
from foliot.model.access import Caller, Permission
from foliot.model.asked import Name
from foliot.model.namespace import Namespace, bare
from foliot.store.gates import PauseKind, QueueLimits
from foliot.store.hints import ALL_QUEUES_TOPIC
from foliot.store.store import Store

Bound = Annotated[int, Meta(ge=1, le=1_000_000_000)]


class QueueChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Null takes a limit away."""

    max_running: Bound | UnsetType | None = UNSET
    max_depth: Bound | UnsetType | None = UNSET


class QueueShown(msgspec.Struct, frozen=True):
    name: str
    max_running: int | None
    max_depth: int | None


pause_decoder = msgspec.json.Decoder(PauseRequest)
change_decoder = msgspec.json.Decoder(QueueChange)


class GateRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["limits and pauses"], route_class=GuardedRoute)
        add = self.router.add_api_route
        pauses = described(200, dict, body=PauseRequest, problems=(422, 503))
        changes = described(200, QueueShown, body=QueueChange, problems=(422, 503))
        add("/v1/pauses", self.list_pauses, methods=["GET"])
        add("/v1/circuits", self.list_circuits, methods=["GET"])
        add("/v1/pause", self.pause_everything, methods=["POST"], openapi_extra=pauses)
        add("/v1/resume", self.resume_everything, methods=["POST"])
        add("/v1/queues/{name}/pause", self.pause_queue, methods=["POST"], openapi_extra=pauses)
        add("/v1/queues/{name}/resume", self.resume_queue, methods=["POST"])
        add("/v1/queues/{name}", self.change_queue, methods=["PATCH"], openapi_extra=changes)
        add("/v1/tasks/{name}/pause", self.pause_task, methods=["POST"], openapi_extra=pauses)
        add("/v1/tasks/{name}/resume", self.resume_task, methods=["POST"])

    @requires(Permission.VIEW)
    async def list_pauses(self, namespace: Within) -> Response:
        """What is paused now, why, and until when. Recurring jobs are paused one by one, and not listed here."""
        return await self._pauses(namespace)

    @requires(Permission.VIEW)
    async def list_circuits(self, namespace: Within) -> Response:
        """Tasks that failed last: how often in a row, and until when they rest."""
        found = [circuit for circuit in await self._store.gates.list_circuits() if namespace.owns(circuit.task)]
        return _answer({"items": [replace(circuit, task=bare(circuit.task)) for circuit in found]})

    @requires(Permission.OPERATE, everywhere=True)
    async def pause_everything(self, request: Request, caller: Calling) -> Response:
        """Nothing is started any more; what runs goes on."""
        return await self._pause("everything", "", request, caller)

    @requires(Permission.OPERATE, everywhere=True)
    async def resume_everything(self, namespace: Within) -> Response:
        return await self._resume("everything", "", namespace)

    @requires(Permission.OPERATE)
    async def pause_queue(self, name: str, request: Request, caller: Calling) -> Response:
        """Nothing of the queue is started any more; what runs goes on, and jobs are accepted."""
        return await self._pause("queue", name, request, caller)

    @requires(Permission.OPERATE)
    async def resume_queue(self, name: str, namespace: Within) -> Response:
        return await self._resume("queue", name, namespace)

    @requires(Permission.OPERATE)
    async def pause_task(self, name: str, request: Request, caller: Calling) -> Response:
        """No run of the task is started any more, in whatever queue."""
        return await self._pause("task", name, request, caller)

    @requires(Permission.OPERATE)
    async def resume_task(self, name: str, namespace: Within) -> Response:
        return await self._resume("task", name, namespace)

    @requires(Permission.OPERATE)
    async def change_queue(self, name: str, request: Request, namespace: Within) -> Response:
        """How many runs of a queue may run at once, and how many may wait before more are refused with 429."""
        asked = await read_json(request, change_decoder, max_bytes=self._body_max_bytes)
        limits = await self._store.gates.get_queue(namespace.qualified(_checked(name)))
        changed = QueueLimits(
            max_running=limits.max_running if asked.max_running is UNSET else asked.max_running,
            max_depth=limits.max_depth if asked.max_depth is UNSET else asked.max_depth,
        )
        await self._store.gates.put_queue(namespace.qualified(name), changed)
        self._store.hints.send([ALL_QUEUES_TOPIC])
        return _answer(QueueShown(name, changed.max_running, changed.max_depth))

    async def _pause(self, kind: PauseKind, name: str, request: Request, caller: Caller) -> Response:
        asked = decode(await read(request, self._body_max_bytes) or b"{}", pause_decoder)
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
        """Those of the namespace, and of everything."""
        found = [pause for pause in await self._store.gates.list_pauses() if not pause.name or namespace.owns(pause.name)]
        return _answer({"items": [replace(pause, name=bare(pause.name)) for pause in found]})


def _checked(name: str) -> str:
    try:
        return msgspec.convert(name, Name)
    except msgspec.ValidationError:
        raise Invalid("name: letters, digits and _ . : - only, 200 at most", field="name") from None


def _answer(body: object) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
