"""`/v1/runs/{id}`: shows, cancels, signals and reruns a run."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.cancellation import CANCELS, CancelRequest, cancel, cancel_decoder
from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import JobShown, shown
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.requests.parameters import run_id_of
from foliot.api.requests.traces import TraceLinks
from foliot.api.security.audit_log import NoteWithin
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.config import Config
from foliot.errors import Conflict
from foliot.events import RunsSubmitted
from foliot.model.checkpoint import NAME_MAX, check_checkpoint_name
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.model.run import RunView
from foliot.model.states import RunState
from foliot.model.templates import Names
from foliot.model.tick import tick_of
from foliot.model.workflow import check_payload
from foliot.store.hints import GATES_TOPIC
from foliot.store.lookup import find_run, unknown_run
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.submission.admission import Admission

T = TypeVar("T")


class RerunRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    payload: dict[str, Any] | None = None
    """Replaces the payload of the run."""
    keep_checkpoints: bool = False
    """A durable function keeps its recorded steps, and continues after them."""


class SignalRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    payload: Any = None
    """The run reads it as `ctx.signal`. It is the result of a step that only waits."""
    approved: bool = True
    """If false, the run fails."""
    message: Annotated[str, Meta(max_length=1000)] = ""
    name: Annotated[str, Meta(min_length=1, max_length=NAME_MAX)] | None = None
    """The signal that a durable function waits for, or will wait for. Not needed if it waits for only one now."""


signal_decoder = msgspec.json.Decoder(SignalRequest)
rerun_decoder = msgspec.json.Decoder(RerunRequest)
SIGNALS = {
    "approved": {"payload": {"by": "ada"}},
    "refused": {"approved": False, "message": "too expensive"},
    "to a durable function": {"name": "approved", "payload": {"by": "ada"}},
}
RERUNS = {
    "unchanged": {},
    "with other arguments": {"payload": {"customer_id": 8}},
    "after its recorded steps": {"keep_checkpoints": True},
}


class RunRoutes:
    def __init__(self, *, store: Store, admission: Admission, config: Config) -> None:
        self._store = store
        self._traces = TraceLinks(config)
        self._known_tasks, self._payloads = admission.known_tasks, admission.payloads
        self._body_max_bytes = config.body_max_bytes
        self.router = APIRouter(tags=["runs"], route_class=PermissionRoute)
        shows = described(200, JobShown, problems=(404, 503))
        cancels = described(
            200, JobShown, body=CancelRequest, examples=CANCELS, problems=(404, 503), is_body_optional=True
        )
        signals = described(
            200, JobShown, body=SignalRequest, examples=SIGNALS, problems=(404, 409, 503), is_body_optional=True
        )
        reruns = described(
            201, JobShown, body=RerunRequest, examples=RERUNS, problems=(404, 409, 503), is_body_optional=True
        )
        add = self.router.add_api_route
        add("/v1/runs/{reference}", self.get_run, methods=["GET"], openapi_extra=shows)
        add("/v1/runs/{reference}/cancel", self.cancel_run, methods=["POST"], openapi_extra=cancels)
        add(
            "/v1/jobs/{reference}/cancel",
            self.cancel_run,
            methods=["POST"],
            operation_id="cancel_job",
            openapi_extra=cancels,
        )
        add("/v1/runs/{reference}/signal", self.signal_run, methods=["POST"], openapi_extra=signals)
        add(
            "/v1/runs/{reference}/rerun",
            self.rerun,
            methods=["POST"],
            status_code=201,
            operation_id="rerun_run",
            openapi_extra=reruns,
        )

    @requires(Permission.VIEW)
    async def get_run(self, reference: str, namespace: Within) -> Response:
        """Shows a run: its state, and its result or error."""
        return _answer(shown(await self._find(namespace, reference), self._traces))

    @requires(Permission.OPERATE)
    async def cancel_run(self, reference: str, request: Request, namespace: Within) -> Response:
        """Cancels a run: a waiting one at once, a running one through its worker. A run that has ended does not
        change."""
        asked = await self._read(request, cancel_decoder)
        run = await self._find(namespace, reference)
        await cancel(self._store, run.id, asked.reason or "cancelled by request", is_forced=asked.force)
        return _answer(shown(await self._find(namespace, reference), self._traces))

    @requires(Permission.OPERATE)
    async def signal_run(self, reference: str, request: Request, namespace: Within) -> Response:
        """Sends a signal to a run that waits for one: the run starts or continues, or with `approved: false` fails.
        An early signal is kept.

        A durable function waits for signals by `name`.
        """
        asked = await self._read(request, signal_decoder)
        run = await self._find(namespace, reference)
        if asked.name is not None or (run.awaits or {}).get("signals"):
            return await self._signal_function(namespace, run, asked, reference)
        found = await self._store.signals.signal_run(run.id, msgspec.json.encode(asked).decode())
        if found is None:
            why = "has had its signal" if (run.options or {}).get("signal") else "does not wait for one"
            raise Conflict(f"the run {reference!r} is {run.state} and {why}")
        self._store.hints.send([found[0] if found[1] is RunState.READY else GATES_TOPIC])
        return _answer(shown(await self._find(namespace, reference), self._traces))

    async def _signal_function(
        self, namespace: Namespace, run: RunView, asked: SignalRequest, reference: str
    ) -> Response:
        if asked.name is not None:
            check_checkpoint_name(asked.name)
        signal = {"payload": asked.payload, "approved": asked.approved, "message": asked.message}
        found = await self._store.checkpoints.signal(run.id, asked.name, msgspec.json.encode(signal).decode())
        if found is None:
            now = await self._find(namespace, reference)
            raise Conflict(f"the run {reference!r} is {'being cancelled' if now.cancel else now.state}")
        if found.state is not None:
            self._store.hints.send([found.queue if found.state is RunState.READY else GATES_TOPIC])
        return _answer(shown(await self._find(namespace, reference), self._traces))

    @requires(Permission.SUBMIT)
    async def rerun(self, reference: str, request: Request, namespace: Within) -> Response:
        """Reruns a run that has ended, in any state. The new run refers to it by `rerun_of`."""
        asked = await self._read(request, rerun_decoder)
        run = await self._find(namespace, reference)
        await self._known_tasks.refuse_disabled(namespace, bare(run.task))
        if asked.payload is not None:
            # The new run has no upstream results that its payload could refer to.
            check_payload(
                bare(run.task), asked.payload, templates=templates_of(run.options), names=names_of(run.options)
            )
            await self._payloads.check(namespace, bare(run.task), asked.payload)
        payload = None if asked.payload is None else msgspec.json.encode(asked.payload).decode()
        made_id, note = new_id(), NoteWithin(request, "rerun", store=self._store)

        async def work(within: Transaction) -> JobShown:
            ids = {run.id: made_id}
            await self._store.dead_letters.rerun_runs(
                namespace,
                ids,
                is_any_state=True,
                is_repeated=True,
                payload=payload,
                keeps_checkpoints=asked.keep_checkpoints,
                within=within,
            )
            # Read before the commit: a read after it could fail, and the caller would take that for a failed rerun.
            new = await find_run(self._store, namespace, made_id, within=within)
            if new is None:
                raise Conflict(
                    f"the run {reference!r} is {run.state}: only a run that has ended can be rerun; "
                    "cancel it first, or wait"
                )
            queues.add(new.queue)
            return shown(new, self._traces)

        queues = set[str]()
        made = await self._store.database.in_transaction("rerun", note.around(work))
        note.committed()
        self._store.hints.send(queues)
        self._store.events.emit(RunsSubmitted(1))
        return json_response(made, 201, {"Location": f"/v1/runs/{made_id}"})

    async def _read(self, request: Request, decoder: msgspec.json.Decoder[T]) -> T:
        """A missing body counts as an empty one."""
        return await decoded(await read(request, self._body_max_bytes) or b"{}", decoder)

    async def _find(self, namespace: Namespace, reference: str) -> RunView:
        run_id = run_id_of(reference)
        run = await find_run(self._store, namespace, run_id)
        if run is None:
            raise await unknown_run(self._store, namespace, run_id)
        return run


def templates_of(options: Any) -> bool | None:
    return options.get("templates") if isinstance(options, dict) else None


def names_of(options: Any) -> Names:
    """The names that placeholders may use in a rerun: those of its tick, but none of other steps."""
    return Names(has_tick=tick_of(options) is not None, steps=())


def _answer(body: object) -> Response:
    return json_response(body)
