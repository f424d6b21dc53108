"""`/v1/runs`: single runs, whatever made them."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.bodies import decode, read
from foliot.api.openapi import described
from foliot.api.schemas import JobShown, shown
from foliot.errors import Conflict, NotFound
from foliot.events import RunsCancelled, RunsSubmitted
from foliot.model.ids import new_id
from foliot.model.run import RunView
from foliot.store.hints import worker_topic
from foliot.store.store import Store

CLOSE_BATCH = 1000


class CancelRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=1000)] = ""
    force: bool = False
    """Ends the run at once and refuses whatever its worker still writes, instead of asking the worker to stop it."""


class RerunRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    payload: dict[str, Any] | None = None
    """In place of the one it had."""


rerun_decoder = msgspec.json.Decoder(RerunRequest)
cancel_decoder = msgspec.json.Decoder(CancelRequest)


def runs_router(*, store: Store, body_max_bytes: int) -> APIRouter:
    router = APIRouter(tags=["runs"])
    cancels = described(200, JobShown, body=CancelRequest, problems=(404, 422, 503))

    @router.get("/v1/runs/{reference}", openapi_extra=described(200, JobShown, problems=(404, 503)))
    async def get_run(reference: str) -> Response:
        """Shows a run: where it stands, and how it ended."""
        return _answer(shown(await find(reference)))

    @router.post("/v1/runs/{reference}/cancel", openapi_extra=cancels)
    @router.post("/v1/jobs/{reference}/cancel", openapi_extra=cancels)
    async def cancel_run(reference: str, request: Request) -> Response:
        """Cancels a run: at once when it waits; a running one is asked to stop, and stopped. What has ended stays as it is."""
        asked = decode(await read(request, body_max_bytes) or b"{}", cancel_decoder)
        run = await find(reference)
        await cancel(store, run.id, asked.reason or "cancelled by request", is_forced=asked.force)
        return _answer(shown(await find(reference)))

    @router.post(
        "/v1/runs/{reference}/rerun",
        status_code=201,
        openapi_extra=described(201, JobShown, body=RerunRequest, problems=(404, 409, 422, 503)),
    )
    async def rerun(reference: str, request: Request) -> Response:
        """Runs once more what has ended, well or not: a new run that points back by `rerun_of`."""
        asked = decode(await read(request, body_max_bytes) or b"{}", rerun_decoder)
        run = await find(reference)
        payload = None if asked.payload is None else msgspec.json.encode(asked.payload).decode()
        made = await store.dead_letters.rerun_runs({run.id: new_id()}, is_any_state=True, is_repeated=True, payload=payload)
        if not made:
            raise Conflict(f"the run {reference!r} is {run.state}: only a run that has ended can be rerun; cancel it first, or wait")
        store.hints.send([made[0].queue])
        store.events.emit(RunsSubmitted(len(made)))
        new = await find(str(made[0].new_id))
        return Response(msgspec.json.encode(shown(new)), 201, {"Location": f"/v1/runs/{new.id}"}, media_type="application/json")

    async def find(reference: str) -> RunView:
        try:
            run = await store.runs.get_run(UUID(reference))
        except ValueError:
            run = None
        if run is None:
            raise NotFound(f"there is no run {reference!r}")
        return run

    return router


async def cancel(store: Store, run_id: UUID, message: str, *, is_forced: bool) -> None:
    marked = await store.runs.mark_cancelled([run_id], message, is_forced=is_forced)
    if marked:
        closed = await store.runs.close_cancelled(CLOSE_BATCH)
        store.events.emit(RunsCancelled(len(closed)))
        store.hints.send(worker_topic(worker_id) for worker_id in {**marked, **closed}.values() if worker_id is not None)


def _answer(body: object) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
